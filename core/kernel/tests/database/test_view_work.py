"""Views that do work of their own, begin at HEAD, or are another object for each database."""

from __future__ import annotations

import threading

import pytest

from svc.cli import open_database
from svc.database import Database, views
from svc.errors import InsufficientStorage, InvalidInput, PluginError
from svc.plugins.lifecycle import bound_view, make_context
from svc_testing import DistributionFactory

STEPS = 3


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


def commit(database, *names):
    with database.transaction() as transaction:
        for name in names:
            transaction.put((name,), name.encode())


class Queue:
    """Queues what commits name, and takes each name in three steps, which it counts in itself alone.

    Rows: ``q/<name>`` waits, ``d/<name>`` is done and holds the root of the tree then.
    """

    name = "test.queue"
    format = 1

    def __init__(self):
        self.storage = None
        self.steps = {}
        self.calls = []
        self.fails = None

    def apply(self, commit, before, after, storage):
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put(b"q/" + change.path[0].encode(), b"")

    def work(self, storage, at, should_stop):
        if storage is not self.storage:
            self.storage, self.steps = storage, {}
        names = [key[2:] for key, _ in storage.scan(b"q/")]
        for name in names:
            while self.steps.get(name, 0) < STEPS:
                self.steps[name] = self.steps.get(name, 0) + 1
                self.calls.append(name.decode())
                if self.fails is not None:
                    raise self.fails
                if should_stop():
                    return True
            storage.delete(b"q/" + name)
            storage.put(b"d/" + name, at.root)
            if should_stop():
                return True
        return False


class Begun(Queue):
    """Begins with a job over the whole tree."""

    name = "test.begun"
    keeps_files = True
    starts_at_head = True

    def start(self, storage, commit):
        self.started = commit
        assert not any(commit.before.walk())
        for path, _ in commit.after.walk():
            storage.put(b"q/" + path[0].encode(), b"")
        (storage.directory / "started").touch()
        if self.fails is not None:
            raise self.fails


def rows(storage):
    return [key.decode() for key, _ in storage.scan()]


def once():
    return True


def drain(reader):
    for _ in range(100):
        if not reader.work():
            return
    pytest.fail("The work does not end.")


# -- work ----------------------------------------------------------------------------------------


def test_a_view_without_work_has_none(database):
    class Idle:
        name = "test.idle"
        format = 1

        def apply(self, commit, before, after, storage):
            storage.put(b"x", b"")

    reader = database.register_view(Idle())
    commit(database, "a")
    assert (reader.has_work, reader.work(), reader.applied) == (False, False, 0)


def test_work_goes_on_from_call_to_call_and_keeps_what_it_has_in_itself(database):
    view = Queue()
    reader = database.register_view(view)
    commit(database, "a", "b")
    reader.catch_up()
    answers = [reader.work(should_stop=once) for _ in range(2 * STEPS + 2)]
    assert answers == [True] * 8
    assert reader.work() is False
    assert view.calls == ["a"] * STEPS + ["b"] * STEPS
    assert reader.read(rows) == ["d/a", "d/b"]


def test_work_stands_on_the_last_commit_that_is_applied_and_not_on_head(database):
    reader = database.register_view(Queue())
    commit(database, "a")
    reader.catch_up()
    root = database.head().root
    commit(database, "b")
    drain(reader)
    with reader._data.open().begin(0) as transaction:
        value = transaction.get(b"d/a")
        assert value is not None
        assert value[:-4] == root
        assert transaction.get(b"q/b") is None


def test_work_before_the_first_commit_sees_an_empty_tree(database):
    roots = []

    class Looking(Queue):
        def work(self, storage, at, should_stop):
            roots.append([*at.walk()])
            return False

    assert database.register_view(Looking()).work() is False
    assert roots == [[]]


def test_commits_of_the_same_opening_leave_what_work_keeps_in_itself(database):
    view = Queue()
    reader = database.register_view(view)
    commit(database, "a")
    reader.catch_up()
    assert reader.work(should_stop=once)
    kept = view.storage
    commit(database, "b")
    reader.catch_up()
    drain(reader)
    assert view.storage is kept
    assert view.calls == ["a"] * STEPS + ["b"] * STEPS


@pytest.mark.parametrize("other_does", ["work", "catch_up", "rebuild"])
def test_what_another_opening_writes_lets_work_begin_from_what_is_stored(database, tmp_path, other_does):
    view = Queue()
    reader = database.register_view(view)
    commit(database, "a", "b")
    reader.catch_up()
    assert reader.work(should_stop=once)
    assert reader.work(should_stop=once)
    commit(database, "c")
    with Database(tmp_path / "x.svcdb") as other:
        others = other.register_view(Queue())
        if other_does == "work":
            drain(others)
            left = []
        else:
            getattr(others, other_does)()
            left = ["a", "b", "c"]
    drain(reader)
    assert view.calls == ["a", "a", *(name for name in left for _ in range(STEPS))]
    reader.catch_up()
    drain(reader)
    assert reader.read(rows) == ["d/a", "d/b", "d/c"]


def test_work_that_changes_no_row_keeps_what_it_has_in_itself(database, tmp_path):
    view = Queue()
    reader = database.register_view(view)
    commit(database, "a")
    reader.catch_up()
    with Database(tmp_path / "x.svcdb") as other:
        # The first call of ours follows a transaction of somebody else, and has no number itself.
        other.register_view(Queue()).work(should_stop=once)
        reader.rebuild()
        assert [reader.work(should_stop=once) for _ in range(2)] == [True, True]
        other.view("test.queue").read(rows)
        assert [reader.work(should_stop=once) for _ in range(2)] == [True, True]
    assert view.calls == ["a"] * STEPS


def test_a_commit_that_is_half_applied_is_finished_first(database, monkeypatch):
    class Slow(Queue):
        def apply(self, commit, before, after, storage):
            for change in commit.transactions[0].changes:
                storage.put(b"q/" + change.path[0].encode(), b"")
                yield

    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0.0)
    view = Slow()
    reader = database.register_view(view)
    commit(database, "a", "b", "c")
    turns = iter((False,))
    assert reader.catch_up(should_stop=lambda: next(turns, True)) == 0
    while reader.applied == 0:
        assert reader.work() is True
        assert view.calls == []
    drain(reader)
    assert reader.read(rows) == ["d/a", "d/b", "d/c"]


def test_a_transaction_of_work_ends_by_time_and_by_rows(database, monkeypatch):
    view = Queue()
    reader = database.register_view(view)
    commit(database, *"abcdef")
    reader.catch_up()
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 3600.0)
    monkeypatch.setattr(views, "CHANGES_PER_TRANSACTION", 4)
    assert reader.work() is True
    assert reader.read(rows) == ["d/a", "d/b", *(f"q/{name}" for name in "cdef")]
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0.0)
    assert reader.work() is True
    assert view.calls == ["a"] * STEPS + ["b"] * STEPS + ["c"]


def test_work_that_fails_is_told_keeps_nothing_and_begins_from_what_is_stored(database):
    view = Queue()
    reader = database.register_view(view)
    commit(database, "a", "b")
    reader.catch_up()
    for _ in range(4):
        assert reader.work(should_stop=once)
    view.fails = ValueError("no such thing")
    with pytest.raises(ValueError, match="no such thing"):
        reader.work()
    failure = reader.failure()
    assert failure is not None
    assert (failure.applied, failure.reason) == (1, "ValueError: no such thing")
    view.fails = OSError(28, "No space left on device")
    with pytest.raises(InsufficientStorage):
        reader.work()
    assert reader.failure().since_ms == failure.since_ms
    view.fails = None
    view.calls.clear()
    drain(reader)
    assert view.calls == ["b"] * STEPS
    assert reader.failure() is None


def test_threads_that_work_at_once_do_everything_once(database):
    view = Queue()
    reader = database.register_view(view)
    names = [f"{number:02}" for number in range(40)]
    commit(database, *names)
    reader.catch_up()

    def work():
        for _ in range(1000):
            if not reader.work(should_stop=once):
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert reader.read(rows) == [f"d/{name}" for name in names]
    assert sorted(view.calls) == sorted(names * STEPS)


# -- beginning at HEAD ---------------------------------------------------------------------------


def test_a_view_that_starts_at_head_follows_no_earlier_commit(database):
    for name in "abc":
        commit(database, name)
    applied = []

    class Counting(Begun):
        def apply(self, commit, before, after, storage):
            applied.append(commit.sequence)
            super().apply(commit, before, after, storage)

    view = Counting()
    reader = database.register_view(view)
    assert reader.applied == 3
    assert (view.started.commit.sequence, view.started.after.root) == (3, database.head().root)
    assert view.started.identity == database.commit_identity(3)
    assert reader.read(rows) == ["q/a", "q/b", "q/c"]
    commit(database, "d")
    drain(reader)
    assert reader.read(rows) == ["d/a", "d/b", "d/c", "q/d"]
    assert applied == [4]
    reader.rebuild()
    assert reader.read(rows) == [f"q/{name}" for name in "abcd"]
    assert applied == [4]


def test_a_database_without_commits_starts_nothing(database):
    view = Begun()
    reader = database.register_view(view)
    assert (reader.applied, reader.work()) == (0, False)
    assert not hasattr(view, "started")
    commit(database, "a")
    drain(database.view("test.begun"))
    assert reader.read(rows) == ["q/a"]


def test_a_start_that_fails_is_told_and_leaves_nothing(database):
    commit(database, "a")
    view = Begun()
    view.fails = ValueError("not today")
    reader = database.register_view(view)
    for _ in range(2):
        with pytest.raises(ValueError, match="not today"):
            reader.catch_up()
        with pytest.raises(ValueError, match="not today"):
            reader.work()
    assert reader.failure().reason == "ValueError: not today"
    view.fails = None
    assert reader.read(rows) == ["q/a"]
    drain(reader)
    assert reader.failure() is None


def test_another_opening_goes_on_with_what_was_started(database, tmp_path):
    commit(database, "a", "b")
    database.register_view(Begun()).work(should_stop=once)
    with Database(tmp_path / "x.svcdb") as other:
        view = Begun()
        reader = other.register_view(view)
        drain(reader)
        assert reader.read(rows) == ["d/a", "d/b"]
        assert not hasattr(view, "started")


# -- one object for each database ----------------------------------------------------------------


class Bound:
    name = "test.bound"
    format = 1

    def __init__(self, context=None):
        self.context = context

    def bind(self, context):
        return Bound(context)

    def apply(self, commit, before, after, storage):
        storage.put(str(self.context.configuration).encode(), b"")


def test_a_view_is_bound_to_the_context_of_its_plugin(database):
    context = make_context("test", "settings", database)
    assert bound_view(Bound(), context).context is context
    unbound = Queue()
    assert bound_view(unbound, context) is unbound


def test_what_is_bound_must_be_the_same_view(database):
    class Other(Bound):
        def bind(self, context):
            return Queue()

    with pytest.raises(PluginError, match="not that view"):
        bound_view(Other(), make_context("test", None, database))


def test_another_object_goes_on_with_the_same_data(database):
    commit(database, "a")
    view = Bound()
    first, second = (bound_view(view, make_context("test", text, database)) for text in ("one", "two"))
    reader = database.register_view(first)
    assert reader.read(rows) == ["one"]
    assert database.register_view(second) is reader
    commit(database, "b")
    assert reader.read(rows) == ["one"]
    assert database.register_view(second, replace=True) is reader
    commit(database, "c")
    assert reader.read(rows) == ["one", "two"]


def test_another_object_finishes_what_the_first_has_begun(database, monkeypatch):
    class Slow(Bound):
        def bind(self, context):
            return Slow(context)

        def apply(self, commit, before, after, storage, start=0):
            for change in commit.transactions[0].changes[start:]:
                storage.put(f"{change.path[0]}-{self.context.configuration}".encode(), b"")
                yield

    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0.0)
    commit(database, "a", "b", "c")
    reader = database.register_view(Slow(make_context("test", "one", database)))
    turns = iter((False,))
    reader.catch_up(should_stop=lambda: next(turns, True))
    database.register_view(Slow(make_context("test", "two", database)), replace=True)
    assert reader.read(rows) == ["a-one", "b-two", "c-two"]


def test_a_view_of_other_data_takes_no_place(database):
    class Newer(Bound):
        format = 2

    database.register_view(Bound())
    with pytest.raises(InvalidInput, match=r"test\.bound"):
        database.register_view(Newer(), replace=True)


DESCRIPTOR = """
import msgspec

from svc.plugins import PluginDescriptor

class Settings(msgspec.Struct, frozen=True):
    word: str = "plain"

PLUGIN = PluginDescriptor(
    id="test.driver", version="1", summary="Drives words", api=(1, 1), implementation="svc_driver.plugin",
    families="svc_driver.api", configuration=Settings,
)
"""
API = """
from svc.plugins import Family, NamedRegistry, hookspec

WORDS = Family("words", "word", object)
FAMILIES = (WORDS,)

@hookspec
def svc_register_words(words: NamedRegistry[object]) -> None:
    "Adds words."
"""
DRIVER = """
from svc.plugins import hookimpl
from svc_driver.api import WORDS

class Words:
    name = "test.words"
    format = 1

    def __init__(self, context=None):
        self.context = context

    def bind(self, context):
        return Words(context)

    def apply(self, commit, before, after, storage):
        storage.put(self.context.configuration.word.encode(), b"")
        for name in self.context.extensions(WORDS):
            storage.put(name.encode(), b"")

@hookimpl
def svc_register_views(views):
    views.add(Words())
"""
EXTENSION = """
from svc.plugins import PluginDescriptor, hookimpl

PLUGIN = PluginDescriptor(
    id="test.extension", version="1", summary="Adds a word", api=(1, 1), implementation="svc_extension",
    extends=("test.driver:words",),
)

class Word:
    name = "added"

@hookimpl
def svc_register_words(words):
    words.add(Word())
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    distributions = DistributionFactory(tmp_path / "installed")
    distributions.install(
        "svc-driver",
        modules={"svc_driver.descriptor": DESCRIPTOR, "svc_driver.api": API, "svc_driver.plugin": DRIVER},
        entry_points={"test.driver": "svc_driver.descriptor:PLUGIN"},
    )
    distributions.install(
        "svc-extension",
        modules={"svc_extension": EXTENSION},
        entry_points={"test.extension": "svc_extension:PLUGIN"},
    )
    monkeypatch.setenv("SVC_PLUGINS", "test.driver,test.extension")
    yield
    distributions.close()


def test_a_command_and_a_server_bind_views_to_settings_and_extensions(installed, tmp_path):
    from svc.plugins import ActivePlugins, disable, enable, load_plugins, register_views

    plugins = load_plugins(["test.driver", "test.extension"])
    assert plugins.problems == ()
    with open_database(tmp_path / "x.svcdb", "test.driver", create=True) as database:
        assert database.view("test.words").read(rows) == ["added", "plain"]
    with Database(tmp_path / "x.svcdb") as database:
        register_views(database, plugins)
        database.view("test.words").rebuild()
        assert database.view("test.words").read(rows) == ["added", "plain"]
    with Database(tmp_path / "x.svcdb") as database:
        active = ActivePlugins(plugins, database)
        active.start()
        assert database.view("test.words").read(rows) == ["added", "plain"]
        enable(database, plugins, "test.driver", {"word": "other"})
        disable(database, plugins, "test.extension")
        active.current()
        database.view("test.words").rebuild()
        assert database.view("test.words").read(rows) == ["other"]
        active.stop()
