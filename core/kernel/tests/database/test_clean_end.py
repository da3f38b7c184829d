"""An orderly close leaves a mark at the end of the log, where there is something to mark, and never twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from crash.block_layer import Sync, Write, record
from svc.database import Database
from svc.errors import InsufficientStorage
from svc.hashing import Hash
from svc.log import Log
from svc.objects.chunking import WHOLE_LIMIT
from svc_maintenance.verification import verify

MARK = 72
EXPORT = Path(__file__).parents[4] / "docs" / "format" / "golden" / "export.hex"


def put(database: Database, name: str) -> None:
    with database.transaction() as transaction:
        transaction.put((name,), name.encode())


def marked(path: Path) -> Hash | None:
    """The identity of the commit that a mark at the end of a file names."""
    with Log.open(path, read_only=True) as log:
        return log.clean_end_at(path.stat().st_size - MARK)


def last_commit(database: Database) -> Hash:
    return database.read_commit(database.head().sequence)[1]


def test_the_last_orderly_close_marks_the_end_with_the_last_commit(path: Path) -> None:
    with Database(path) as database:
        put(database, "a")
        put(database, "b")
        last, end = last_commit(database), database.head().commit_end
    assert path.stat().st_size == end + MARK
    assert marked(path) == last
    with Database(path) as database:
        assert database.head().commit_end == end and verify(database).ok
        put(database, "c")
        assert database.commit(3).durable_end == end
    assert marked(path) not in (None, last)


def test_a_close_behind_which_nothing_was_written_changes_nothing(path: Path) -> None:
    with Database(path) as database:
        put(database, "a")
    before = path.read_bytes()
    for read_only in (False, True, False):
        with Database(path, read_only=read_only) as database:
            database.at().get(("a",))
    shutil.rmtree(f"{path}.d")
    Database(path).close()
    assert path.read_bytes() == before


def test_an_empty_database_and_an_export_are_left_as_they_are(path: Path) -> None:
    Database(path).close()
    assert path.stat().st_size == 128
    with Database(path) as database:
        put(database, "a")
    export = path.with_name("export.svcdb")
    export.write_bytes(bytes.fromhex(EXPORT.read_text()))
    before = export.read_bytes()
    with Database(export) as database:
        assert verify(database).ok
    assert export.read_bytes() == before
    with Database(export) as database:
        put(database, "b")
    assert marked(export) is not None


def test_only_the_last_one_who_has_it_open_marks_the_end(path: Path) -> None:
    first, second = Database(path), Database(path)
    put(first, "a")
    size = path.stat().st_size
    first.close()
    assert path.stat().st_size == size
    second.close()
    assert path.stat().st_size == size + MARK


def test_what_no_commit_took_is_durable_before_the_mark_stands_behind_it(path: Path) -> None:
    with Database(path) as database:
        put(database, "a")
    with record(path) as recording:
        with Database(path) as database:
            database.store_bytes(os.urandom(WHOLE_LIMIT + 1))
        uploads = [place for place, event in enumerate(recording.events) if isinstance(event, Write)]
    *_, upload, mark = uploads
    assert len(recording.events[mark].data) == MARK
    assert any(isinstance(event, Sync) for event in recording.events[upload:mark])
    with Database(path) as database:
        report = verify(database)
        assert report.ok and report.unnamed == 0
        put(database, "b")


def test_a_mark_that_cannot_be_written_keeps_nobody_from_closing(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Log, hash: Hash, *, time_ms: int) -> None:
        raise InsufficientStorage("The disk is full.")

    with Database(path) as database:
        put(database, "a")
        monkeypatch.setattr(Log, "mark_clean_end", fail)
    assert "was not marked" in caplog.text
    with Database(path) as database:
        assert not database._opened.rebuilt and verify(database).ok


def test_a_mark_in_a_content_means_nothing_where_damage_makes_it_look_like_a_record(path: Path) -> None:
    """A database that is stored in a database: its commits and its mark are bytes of a chunk."""
    inner = path.with_name("inner.svcdb")
    with Database(inner) as database:
        put(database, "foreign")
    content = inner.read_bytes()
    with Database(path) as database:
        put(database, "a")
        with database.transaction() as transaction:
            transaction.put(("stored",), content)
        damaged = bytearray(path.read_bytes())
    damaged[damaged.index(content) - 60] ^= 1
    copy = path.with_name("copy.svcdb")
    copy.write_bytes(damaged)
    with Database(copy) as database:
        names = [name for name, _ in database.at().entries(())]
        assert "foreign" not in names and names[0] == "a"
        assert not verify(database).ok
