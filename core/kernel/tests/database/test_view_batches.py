"""Views that take several commits at once, and views that keep files of their own."""

from __future__ import annotations

import shutil

import pytest

from svc.database import Database, View, ViewBatch, view_batches, views
from svc.errors import InsufficientStorage, NotFound
from svc_cli import open_database
from svc_testing import DistributionFactory


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


def commit(database, *names):
    with database.transaction() as transaction:
        for name in names:
            transaction.put((name,), name.encode())


class Recording(View):
    """Notes how it was called, and keeps one row and one file for each path."""

    name = "test.recording"
    format = 1
    keeps_files = True

    def __init__(self):
        self.calls = []
        self.fails_at_end = None

    def begin(self, storage):
        self.calls.append("begin")
        return Batch(self, storage)

    def of(self, kind):
        return [call[1:] for call in self.calls if call[0] == kind]


class Batch(ViewBatch):
    def __init__(self, view, storage):
        self.view = view
        self.storage = storage

    def apply(self, commits, start):
        self.view.calls.append(("apply", [step.commit.sequence for step in commits], start))
        names = [
            change.path[0]
            for step in commits
            for transaction in step.commit.transactions
            for change in transaction.changes
        ]
        for number, name in enumerate(names[start:], start):
            self.storage.put(name.encode(), str(number).encode())
            (self.storage.directory / name).touch()
            yield

    def end(self):
        self.view.calls.append("end")
        if self.view.fails_at_end is not None:
            raise self.view.fails_at_end

    def close(self):
        self.view.calls.append("close")


def held(storage):
    rows = [key.decode() for key, _ in storage.scan()]
    assert rows == sorted(path.name for path in storage.directory.iterdir())
    return rows


def directory(storage):
    return storage.directory


def test_commits_come_several_at_once_in_order_and_bounded(database, monkeypatch):
    monkeypatch.setattr(view_batches, "_MOST_CHANGES", 90)
    for number in range(70):
        commit(database, f"{number:03}")
    commit(database, *(f"many-{number:04}" for number in range(83)))
    commit(database, "x", "y", *(f"z{number}" for number in range(10)))
    view = Recording()
    reader = database.register_view(view)
    assert len(reader.read(held)) == 70 + 83 + 12
    runs = [sequences for sequences, _ in view.of("apply")]
    assert [sequence for run in runs for sequence in run] == list(range(1, 73))
    assert (runs[0], runs[1][0]) == (list(range(1, 65)), 65)
    assert runs[1:] == [[*range(65, 72)], [72]]
    assert view.calls[0] == "begin"
    assert view.calls[-2:] == ["end", "close"]


def test_a_batch_that_stands_at_a_yield_goes_on_in_the_next_transaction(database, monkeypatch):
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0.0)
    for name in "abc":
        commit(database, name, name * 2)
    view = Recording()
    assert database.register_view(view).read(held) == ["a", "aa", "b", "bb", "c", "cc"]
    assert view.of("apply") == [([1, 2, 3], 0)]
    assert view.calls.count("begin") == view.calls.count("close") == 1
    assert view.calls.count("end") == 7


def test_a_transaction_ends_behind_so_many_rows_in_the_middle_of_a_commit(database, monkeypatch):
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 3600.0)
    monkeypatch.setattr(views, "CHANGES_PER_TRANSACTION", 4)
    commit(database, *"abcdefghij")
    view = Recording()
    assert database.register_view(view).read(held) == list("abcdefghij")
    assert view.of("apply") == [([1], 0)]
    assert view.calls.count("end") == 3


def test_a_transaction_ends_behind_so_many_rows_of_many_commits(database, monkeypatch):
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 3600.0)
    monkeypatch.setattr(views, "CHANGES_PER_TRANSACTION", 6)

    class Turning(View):
        name = "test.turning"
        format = 1

        def apply(self, commit, before, after, storage, start=0):
            storage.put(b"turn", b"")
            storage.delete(b"turn")

    for name in "abcdefgh":
        commit(database, name)
    reader = database.register_view(Turning())
    applied = []
    while not applied or applied[-1] < 8:
        turns = iter((False,))
        applied.append(reader.catch_up(should_stop=lambda turns=turns: next(turns, True)))
    assert applied == [3, 6, 8]


def test_another_opening_goes_on_with_the_same_commits_where_the_first_has_ended(
    database, tmp_path, monkeypatch
):
    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0.0)
    for name in "abc":
        commit(database, name, name * 2)
    stopped = Recording()
    turns = iter((False, False, False))
    database.register_view(stopped).catch_up(should_stop=lambda: next(turns, True))
    commit(database, "later")
    with Database(tmp_path / "x.svcdb") as other:
        view = Recording()
        assert other.register_view(view).read(held) == ["a", "aa", "b", "bb", "c", "cc", "later"]
        assert view.of("apply") == [([1, 2, 3], 3), ([4], 0)]
    # The first opening finds that its batch is of the past, and lets go of it.
    commit(database, "last")
    assert database.view("test.recording").read(held)[-2:] == ["last", "later"]
    assert stopped.of("apply") == [([1, 2, 3], 0), ([5], 0)]
    assert stopped.calls.count("begin") == stopped.calls.count("close") == 2


def test_an_end_that_fails_keeps_nothing_and_the_commits_come_again(database):
    commit(database, "a")
    view = Recording()
    reader = database.register_view(view)
    assert reader.read(held) == ["a"]
    commit(database, "b")
    view.fails_at_end = ValueError("disk on fire")
    with pytest.raises(ValueError, match="on fire"):
        reader.catch_up()
    assert reader.applied == 1
    assert reader.failure() is not None
    assert view.calls[-1] == "close"
    view.fails_at_end = OSError(28, "No space left on device")
    with pytest.raises(InsufficientStorage):
        reader.catch_up()
    view.fails_at_end = None
    assert reader.read(held) == ["a", "b"]


def test_a_directory_that_was_removed_is_made_anew_with_its_data(database):
    commit(database, "a", "b")
    view = Recording()
    reader = database.register_view(view)
    first = reader.read(directory)
    shutil.rmtree(first)
    assert reader.read(held) == ["a", "b"]
    assert view.of("apply") == [([1], 0), ([1], 0)]
    assert reader.read(directory) != first


def test_data_that_were_removed_take_their_directory_with_them(tmp_path):
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        commit(database, "a")
        first = database.register_view(Recording()).read(directory)
        (first / "stray").touch()
    data = first.parent.parent
    for name in ("data.mdb", "lock.mdb"):
        (data / name).unlink()
    with Database(path) as database:
        reader = database.register_view(Recording())
        assert reader.read(held) == ["a"]
        assert [item.name for item in first.parent.iterdir()] == [reader.read(directory).name]


def test_an_older_copy_of_the_database_has_a_directory_of_its_own(tmp_path):
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        commit(database, "a")
    older = path.read_bytes()
    with Database(path) as database:
        commit(database, "b")
        first = database.register_view(Recording()).read(directory)
    shutil.rmtree(tmp_path / "x.svcdb.d" / "index")
    for name in ("tail", "head"):
        (tmp_path / "x.svcdb.d" / name).unlink()
    path.write_bytes(older)
    with Database(path) as database:
        commit(database, "c")
        reader = database.register_view(Recording())
        assert reader.read(held) == ["a", "c"]
        assert not first.exists()


def test_another_format_has_another_directory_and_the_last_to_leave_clears_up(tmp_path):
    class Newer(Recording):
        format = 2

    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        commit(database, "a")
        old = database.register_view(Recording()).read(directory)
        with Database(path) as newer:
            new = newer.register_view(Newer()).read(directory)
            assert old.is_dir()
            assert new.is_dir()
    assert (old.is_dir(), new.exists()) == (True, False)


def test_who_reads_while_another_begins_anew_gets_the_new_directory(database, tmp_path):
    commit(database, "a")
    reader = database.register_view(Recording())
    looked = []

    def look(storage):
        looked.append(storage.directory)
        if len(looked) == 1:
            with Database(tmp_path / "x.svcdb") as other:
                other.register_view(Recording()).rebuild()
        return (storage.directory / "a").read_bytes()

    assert reader.read(look) == b""
    assert len(set(looked)) == 2


def test_a_view_of_single_commits_may_keep_files_too(database):
    class Single(View):
        name = "test.single"
        format = 1
        keeps_files = True

        def apply(self, commit, before, after, storage, start=0):
            (storage.directory / str(commit.sequence)).touch()

    commit(database, "a")
    commit(database, "b")
    reader = database.register_view(Single())
    assert sorted(path.name for path in reader.read(directory).iterdir()) == ["1", "2"]


def test_a_command_reads_the_views_of_its_plugin(tmp_path, monkeypatch):
    distributions = DistributionFactory(tmp_path / "installed")
    distributions.install(
        "svc-counting",
        modules={"svc_counting": COUNTING},
        entry_points={"test.counting": "svc_counting:PLUGIN"},
    )
    monkeypatch.setenv("SVC_PLUGINS", "test.counting")
    try:
        with open_database(tmp_path / "x.svcdb", "test.counting", create=True) as database:
            commit(database, "a")
            commit(database, "b")
            assert database.view("test.counting").read(rows) == [b"1", b"2", b"3"]
        with open_database(tmp_path / "x.svcdb", "test.counting", read_only=True) as database:
            assert database.view("test.counting").read(rows) == [b"1", b"2", b"3"]
            with pytest.raises(NotFound, match=r"test\.other"):
                database.view("test.other")
        with open_database(tmp_path / "x.svcdb", read_only=True) as database, pytest.raises(NotFound):
            database.view("test.counting")
    finally:
        distributions.close()


COUNTING = """
from svc.plugin import PluginDescriptor, View, hookimpl

PLUGIN = PluginDescriptor(
    id="test.counting", version="1", summary="Counts commits", api=(1, 1), implementation="svc_counting"
)


class Counting(View):
    name = "test.counting"
    format = 1

    def apply(self, commit, before, after, storage, start=0):
        storage.put(b"%d" % commit.sequence, b"")


@hookimpl
def svc_register_views(views):
    views.add(Counting())
"""


def rows(storage):
    return [key for key, _ in storage.scan()]
