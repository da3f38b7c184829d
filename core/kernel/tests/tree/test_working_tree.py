from __future__ import annotations

import copy

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, SvcError
from svc.tree import (
    NO_TOTALS,
    UNWRITTEN,
    Entry,
    EntryKind,
    WorkingTree,
    build,
    check_directory,
    directory_entry,
    edit,
    empty_directory,
    resolve,
    totals,
    walk,
)
from svc_testing.memory_nodes import MemoryNodeStore, build_tree


def file(number: int) -> Entry:
    return Entry(EntryKind.FILE, number.to_bytes(32, "big"), number, 1000 + number, 2000 + number)


def empty(at_ms: int) -> Entry:
    return Entry(EntryKind.DIRECTORY, empty_directory(MemoryNodeStore()), 0, at_ms, at_ms, totals=NO_TOTALS)


class ModelDirectory(dict):
    """A directory of the model: entries and directories by name; own_ms None until the next write."""

    own_ms: int | None = None


def find(model, path):
    for name in path:
        if not isinstance(model, ModelDirectory):
            return None
        model = model.get(name)
    return model


def parent_of(model, path):
    for name in path[:-1]:
        model = model.setdefault(name, ModelDirectory())
        if not isinstance(model, ModelDirectory):
            return None
    return model


def root_of(store, model, now_ms):
    """The root that the model's content has, made from nothing."""
    own = {}
    for name, value in model.items():
        if isinstance(value, ModelDirectory):
            if not value and value.own_ms is None:
                value.own_ms = now_ms
            own[name] = directory_entry(store, root_of(store, value, now_ms), value.own_ms or 0)
        else:
            own[name] = value
    if model:
        model.own_ms = None
    return build(store, sorted(own.items()))


paths = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(tuple)
files = st.integers(0, 5).map(file)
entries = st.one_of(files, st.integers(1, 3).map(empty))


class WorkingTreeMachine(RuleBasedStateMachine):
    """Every operation, on a working tree and on nested dictionaries; whatever one refuses, both refuse."""

    def __init__(self):
        super().__init__()
        self.store = MemoryNodeStore()
        self.tree = WorkingTree(self.store, empty_directory(self.store))
        self.model = ModelDirectory()
        self.savepoints = []
        self.now_ms = 10_000

    def outcome(self, operation, *arguments):
        try:
            operation(*arguments)
        except SvcError as error:
            return type(error)
        return None

    def file_in_the_way(self, path):
        values = [find(self.model, path[:depth]) for depth in range(1, len(path))]
        return any(value is not None and not isinstance(value, ModelDirectory) for value in values)

    @rule(path=paths, entry=entries)
    def put(self, path, entry):
        is_directory = entry.kind is EntryKind.DIRECTORY
        existing = find(self.model, path)
        refused = self.file_in_the_way(path) or (
            existing is not None and isinstance(existing, ModelDirectory) != is_directory
        )
        assert self.outcome(self.tree.put, path, entry) is (Conflict if refused else None)
        if not refused:
            value = entry
            if is_directory:
                value = ModelDirectory()
                value.own_ms = entry.created_ms
            parent_of(self.model, path)[path[-1]] = value

    @rule(path=paths)
    def remove(self, path):
        there = find(self.model, path) is not None
        assert self.outcome(self.tree.remove, path) is (None if there else NotFound)
        if there:
            parent_of(self.model, path).pop(path[-1])

    def transfer(self, source, destination, operation, keeps):
        value = find(self.model, source)
        into_itself = destination[: len(source)] == source
        if value is None:
            expected = NotFound
        elif not keeps and into_itself and isinstance(value, ModelDirectory) and source != destination:
            expected = Conflict
        elif not keeps and source == destination:
            expected = None
        elif find(self.model, destination) is not None:
            expected = AlreadyExists
        elif self.file_in_the_way(destination):
            expected = Conflict
        else:
            expected = None
        assert self.outcome(operation, source, destination) is expected
        if expected is None and source != destination:
            moved = copy.deepcopy(value)
            parent_of(self.model, destination)[destination[-1]] = moved
            if not keeps:
                parent_of(self.model, source).pop(source[-1])

    @rule(source=paths, destination=paths)
    def move(self, source, destination):
        self.transfer(source, destination, self.tree.move, keeps=False)

    @rule(source=paths, destination=paths)
    def copy(self, source, destination):
        self.transfer(source, destination, self.tree.copy, keeps=True)

    @rule(wanted=st.lists(st.tuples(paths, files, st.booleans()), max_size=5))
    def put_files(self, wanted):
        places, entries_put = [path for path, _, _ in wanted], [entry for _, entry, _ in wanted]
        stood = self.tree.put_files(places, entries_put, [keeps for _, _, keeps in wanted])
        if stood is None:
            return
        assert len(set(places)) == len(places)
        assert stood == [find(self.model, path) for path in places]
        for (path, entry, keeps), before, after in zip(wanted, stood, entries_put, strict=True):
            is_kept = keeps and before is not None and before.kind is EntryKind.FILE
            assert after == (replace(entry, created_ms=before.created_ms) if is_kept else entry)
            assert not self.file_in_the_way(path)
            parent_of(self.model, path)[path[-1]] = after

    @rule()
    def savepoint(self):
        self.savepoints.append((self.tree.savepoint(), copy.deepcopy(self.model)))

    @precondition(lambda self: self.savepoints)
    @rule(data=st.data())
    def rollback(self, data):
        place = data.draw(st.integers(0, len(self.savepoints) - 1))
        savepoint, model = self.savepoints[place]
        self.savepoints = self.savepoints[: place + 1]
        self.tree.rollback(savepoint)
        self.model = copy.deepcopy(model)

    @rule()
    def write(self):
        self.now_ms += 1
        root = self.tree.write(self.now_ms)
        assert root == root_of(MemoryNodeStore(), self.model, self.now_ms)
        assert root == self.tree.write(self.now_ms + 500)
        for savepoint, _ in self.savepoints:
            with pytest.raises(ValueError, match="no more"):
                self.tree.rollback(savepoint)
        self.savepoints = []

    @invariant()
    def shows_what_the_model_holds(self):
        shown = dict(self.tree.walk())
        expected = {}

        def collect(model, prefix):
            for name, value in sorted(model.items()):
                expected[(*prefix, name)] = value
                if isinstance(value, ModelDirectory):
                    collect(value, (*prefix, name))

        collect(self.model, ())
        assert list(shown) == list(expected)
        for path, value in expected.items():
            entry = self.tree.get(path)
            assert entry == shown[path]
            if isinstance(value, ModelDirectory):
                assert entry.kind is EntryKind.DIRECTORY
                assert self.tree.is_empty(path) is (not value)
                assert [name for name, _ in self.tree.children(path)] == sorted(value)
            else:
                assert entry == value


TestWorkingTree = WorkingTreeMachine.TestCase
TestWorkingTree.settings = settings(max_examples=60, stateful_step_count=40)


@pytest.fixture
def store():
    return MemoryNodeStore()


@pytest.fixture
def tree(store):
    contents = {("d", "a"): file(1), ("d", "s", "b"): file(2), ("e", "c"): file(3), ("f",): file(4)}
    return WorkingTree(store, build_tree(store, contents))


def test_a_tree_without_changes_writes_its_own_root(store):
    root = build_tree(store, {("d", "a"): file(1)})
    tree = WorkingTree(store, root)
    written = store.writes
    assert tree.write(5) == root
    tree.put(("d", "a"), file(1))
    assert tree.write(6) == root
    assert store.writes == written


def test_files_that_have_nothing_to_do_with_each_other_are_put_together(tree, store):
    paths = [("d", "n"), ("d", "a"), ("new", "x"), ("e", "c"), ("n",)]
    put = [file(number) for number in range(20, 25)]
    assert tree.put_files(paths, put, [True, True, True, False, True]) == [None, file(1), None, file(3), None]
    assert put == [file(20), replace(file(21), created_ms=1001), file(22), file(23), file(24)]
    left = {("d", "s", "b"): file(2), ("f",): file(4)}
    assert tree.write(9) == build_tree(store, {**left, **dict(zip(paths, put, strict=True))})


@pytest.mark.parametrize(
    "paths",
    [
        [("g",), ("d", "s")],
        [("g",), ("f", "x")],
        [("g",), ("g",)],
        [("g",), ("g", "x")],
        [("g", "x"), ("g",)],
        [("x", "y"), ("f",), ("h",), ("f",)],
    ],
)
def test_files_that_depend_on_each_other_or_are_refused_are_not_put_together(tree, paths):
    tree.put(("d", "z"), file(9))
    root = list(tree.walk())
    assert tree.put_files(paths, [file(8)] * len(paths), [True] * len(paths)) is None
    assert list(tree.walk()) == root
    assert tree.put_files([("g",), ("d", "z")], [file(8)] * 2, [True] * 2) is None, "it was changed before"
    assert list(tree.walk()) == root


def test_refusals_name_the_path_and_change_nothing(tree):
    root = tree.write(1)
    for operation, error, path in [
        (lambda: tree.put(("f", "x"), file(1)), Conflict, "/f"),
        (lambda: tree.put(("f", "x", "y"), file(1)), Conflict, "/f"),
        (lambda: tree.put(("d",), file(1)), Conflict, "/d"),
        (lambda: tree.put(("f",), empty(3)), Conflict, "/f"),
        (lambda: tree.put((), file(1)), Conflict, "/"),
        (lambda: tree.remove(("x",)), NotFound, "/x"),
        (lambda: tree.remove(("f", "x")), NotFound, "/f/x"),
        (lambda: tree.remove(()), Conflict, "/"),
        (lambda: tree.move(("d",), ("d", "x")), Conflict, "/d/x"),
        (lambda: tree.move((), ("x",)), Conflict, "/"),
        (lambda: tree.move(("f",), ("d",)), AlreadyExists, "/d"),
        (lambda: tree.move(("d",), ("f", "x")), Conflict, "/f"),
        (lambda: tree.copy(("x",), ("y",)), NotFound, "/x"),
        (lambda: tree.is_empty(("x",)), NotFound, "/x"),
        (lambda: tree.is_empty(("f",)), Conflict, "/f"),
    ]:
        with pytest.raises(error) as caught:
            operation()
        assert caught.value.details["path"] == path
    assert tree.write(2) == root


def test_a_copied_directory_and_its_source_change_apart(store, tree):
    tree.put(("d", "pending"), file(7))
    tree.copy(("d",), ("copy",))
    tree.put(("copy", "s", "b"), file(8))
    tree.remove(("d", "a"))
    root = tree.write(9)
    assert resolve(store, root, ("d", "s", "b")) == file(2)
    assert resolve(store, root, ("copy", "s", "b")) == file(8)
    assert resolve(store, root, ("d", "a")) is None
    assert resolve(store, root, ("copy", "a")) == file(1)
    assert resolve(store, root, ("d", "pending")) == resolve(store, root, ("copy", "pending")) == file(7)


def test_a_directory_copied_into_itself_holds_what_was_there_before(store, tree):
    tree.put(("d", "pending"), file(7))
    tree.copy(("d",), ("d", "backup"))
    root = tree.write(9)
    assert [path for path, _ in walk(store, root, ("d", "backup"))] == [
        ("d", "backup", "a"), ("d", "backup", "pending"), ("d", "backup", "s"), ("d", "backup", "s", "b"),
    ]  # fmt: skip


def test_the_whole_tree_can_be_copied_below_itself(store, tree):
    tree.copy((), ("all",))
    root = tree.write(9)
    assert resolve(store, root, ("all", "d", "s", "b")) == file(2)
    assert resolve(store, root, ("all", "all")) is None


def test_copies_that_double_sixty_times_cost_sixty_directories(store, tree):
    tree.put(("d0", "x"), file(1))
    for depth in range(60):
        tree.copy((f"d{depth}",), (f"d{depth + 1}", "one"))
        tree.move((f"d{depth}",), (f"d{depth + 1}", "two"))
    written = store.writes
    root = tree.write(5)
    assert store.writes - written < 200
    assert totals(store, root).files == 2**60 + 4


def test_a_directory_entry_brings_its_contents_and_takes_later_changes(store, tree):
    inside = build_tree(store, {("p", "q"): file(5)})
    tree.put(("new", "home"), directory_entry(store, inside, 0))
    tree.put(("new", "home", "p", "r"), file(6))
    root = tree.write(5)
    assert dict(walk(store, root, ("new",), files_only=True)) == {
        ("new", "home", "p", "q"): file(5),
        ("new", "home", "p", "r"): file(6),
    }


def test_the_root_itself_can_be_replaced_and_taken_back(store, tree):
    before = tree.savepoint()
    other = build_tree(store, {("only",): file(5)})
    tree.put((), directory_entry(store, other, 0))
    assert [name for name, _ in tree.children()] == ["only"]
    tree.rollback(before)
    assert [name for name, _ in tree.children()] == ["d", "e", "f"]


def test_an_emptied_directory_stays_with_the_time_of_the_write_and_one_left_alone_keeps_its_own(store, tree):
    tree.put(("bare",), empty(123))
    tree.put(("bare", "x"), file(1))
    tree.remove(("bare", "x"))
    tree.remove(("e", "c"))
    root = tree.write(777)
    assert resolve(store, root, ("bare",)) == empty(123)
    assert resolve(store, root, ("e",)) == empty(777)
    tree.put(("e", "x"), file(1))
    tree.remove(("e", "x"))
    assert tree.write(888) == root


def test_a_directory_with_pending_changes_shows_no_hash_and_cannot_be_put_elsewhere(tree):
    assert tree.get(("d",)).hash != UNWRITTEN
    tree.put(("d", "new"), file(1))
    shown = tree.get(("d",))
    assert (shown.kind, shown.hash) == (EntryKind.DIRECTORY, UNWRITTEN)
    with pytest.raises(InvalidInput):
        tree.put(("elsewhere",), shown)
    tree.write(4)
    assert tree.get(("d",)).hash != UNWRITTEN


def test_children_listed_while_changes_go_on_are_those_of_the_beginning(tree):
    listing = tree.children(("d",))
    assert next(listing)[0] == "a"
    tree.put(("d", "b"), file(1))
    tree.remove(("d", "s"))
    assert [name for name, _ in listing] == ["s"]
    assert [name for name, _ in tree.children(("d",))] == ["a", "b"]
    assert list(tree.children(("f",))) == list(tree.children(("missing",))) == []


def test_a_savepoint_from_before_another_rollback_is_refused_once_it_means_something_else(tree):
    first = tree.savepoint()
    tree.put(("x",), file(1))
    second = tree.savepoint()
    tree.rollback(first)
    tree.put(("y",), file(2))
    with pytest.raises(ValueError, match="no more"):
        tree.rollback(second)
    tree.rollback(first)
    assert tree.get(("y",)) is None


def test_a_write_that_fails_leaves_all_changes_pending(store, tree, monkeypatch):
    tree.put(("d", "s", "new"), file(9))
    tree.put(("g", "h"), file(9))
    calls = []

    def refuse_third(payload, node=None):
        calls.append(payload)
        if len(calls) == 3:
            raise OSError("no space left")
        return MemoryNodeStore.write_node(store, payload)

    monkeypatch.setattr(store, "write_node", refuse_third)
    with pytest.raises(OSError, match="no space"):
        tree.write(5)
    monkeypatch.undo()
    root = tree.write(5)
    assert resolve(store, root, ("d", "s", "new")) == resolve(store, root, ("g", "h")) == file(9)


def test_a_mounted_subtree_is_written_to_its_own_store():
    users, system = MemoryNodeStore(), MemoryNodeStore(system=True)

    class Both:
        """Reads the nodes of either store, writes to the system's."""

        def read_node(self, node_hash):
            return (users if node_hash in users.payloads else system).read_node(node_hash)

        def write_node(self, payload, node=None):
            return system.write_node(payload, node)

    files = build_tree(users, {("a", "b"): file(1)})
    outer = edit(system, empty_directory(system), {"settings": file(2)})
    both = Both()
    tree = WorkingTree(both, outer, lambda path: users if path[:1] == ("head",) else both)
    tree.put(("head",), directory_entry(users, files, 0))
    tree.put(("head", "a", "c"), file(3))
    tree.put(("plugins", "x"), file(4))
    for operation in (tree.copy, tree.move):
        with pytest.raises(InvalidInput):
            operation(("head", "a"), ("plugins", "a"))
    root = tree.write(5)
    head = resolve(both, root, ("head",))
    assert head.hash == build_tree(users, {("a", "b"): file(1), ("a", "c"): file(3)})
    assert {root, resolve(both, root, ("plugins",)).hash} <= system.payloads.keys()
    assert not {root, resolve(both, root, ("plugins",)).hash} & users.payloads.keys()
    check_directory(both, root)


def test_directories_a_thousand_deep_are_written_and_listed(store, tree):
    tree.put(("x",) * 1500, file(1))
    assert sum(1 for _ in tree.walk(("x",))) == 1499
    root = tree.write(5)
    assert resolve(store, root, ("x",) * 1500) == file(1)
