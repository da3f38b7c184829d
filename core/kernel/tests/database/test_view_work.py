"""Views that do work of their own, or begin at HEAD."""

from __future__ import annotations

import threading

import pytest

from svc.database import Database, View, views
from svc.errors import InsufficientStorage, ServiceUnavailable

STEPS = 3


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


def commit(database, *names):
    with database.transaction() as transaction:
        for name in names:
            transaction.put((name,), name.encode())


class Queue(View):
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

    def apply(self, commit, before, after, storage, start=0):
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
    class Idle(View):
        name = "test.idle"
        format = 1

        def apply(self, commit, before, after, storage, start=0):
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


def test_what_waits_for_more_work_does_so_when_others_can_write(database, tmp_path):
    class Waiting(Queue):
        name = "test.waiting"

        def work(self, storage, at, should_stop):
            return self.wait if super().work(storage, at, should_stop) else False

        def wait(self):
            with environment.begin(write=True):
                pass
            self.calls.append("waited")

    view = Waiting()
    reader = database.register_view(view)
    commit(database, "a")
    reader.catch_up()
    environment = reader._data.open()
    assert [reader.work(should_stop=once) for _ in range(STEPS + 2)] == [True] * (STEPS + 1) + [False]
    assert view.calls == ["a", "waited"] * STEPS + ["waited"]


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
        def apply(self, commit, before, after, storage, start=0):
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


class Bounded(Queue):
    """Takes no commit while three names wait."""

    name = "test.bounded"

    def is_full(self, storage):
        return sum(1 for _ in storage.scan(b"q/")) >= 3


def test_a_view_that_is_full_works_before_it_takes_commits(database, tmp_path):
    reader = database.register_view(Bounded())
    for name in "abcdefg":
        commit(database, name)
    assert reader.catch_up() == 3
    with Database(tmp_path / "x.svcdb") as other:
        # Nobody else overruns it either, and who reads what is there need not wait.
        assert other.register_view(Bounded()).catch_up() == 3
    assert reader.read(rows, minimum=3) == ["q/a", "q/b", "q/c"]
    with pytest.raises(ServiceUnavailable):
        reader.read(rows, minimum=4)
    assert reader.work(should_stop=once)
    drain(reader)
    assert reader.catch_up() == 6
    drain(reader)
    assert reader.catch_up() == 7
    assert reader.read(rows) == [*(f"d/{name}" for name in "abcdef"), "q/g"]


def test_a_commit_that_is_half_applied_goes_on_although_the_view_is_full(database, monkeypatch):
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0)

    class Slow(Bounded):
        name = "test.slow"

        def apply(self, commit, before, after, storage, start=0):
            for transaction in commit.transactions:
                for change in transaction.changes:
                    storage.put(b"q/" + change.path[0].encode(), b"")
                    yield

    reader = database.register_view(Slow())
    commit(database, *"abcdef")
    assert reader.catch_up() == 1
    assert len(reader.read(rows)) == 6


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
        def apply(self, commit, before, after, storage, start=0):
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
