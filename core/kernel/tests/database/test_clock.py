"""A clock that is wrong: before 1970 nothing can be dated, and a date to come sticks and is said."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import ServiceUnavailable
from svc.objects.chunking import WHOLE_LIMIT
from svc_maintenance.verification import verify

LATER_NS = 3_786_912_000 * 10**9  # the year 2090


def put(database: Database, name: str, content: bytes = b"x") -> None:
    with database.transaction() as transaction:
        transaction.put((name,), content)


def codes(database: Database) -> list[str]:
    return [one.code for one in database.findings()]


def test_a_commit_dated_ahead_of_the_clock_is_said_until_the_clock_is_there(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Database(path) as database:
        put(database, "a")
        with monkeypatch.context() as patched:
            patched.setattr(time, "time_ns", lambda: LATER_NS)
            put(database, "b")
            assert codes(database) == []
        assert codes(database) == ["database.clock"]
        put(database, "c")
        assert database.commit(3).time_ms == LATER_NS // 1_000_000
        (finding,) = database.findings()
        assert "dated 2090-01-01 00:00:00 UTC, ahead of the clock" in finding.message
    warnings = [one for one in caplog.records if "ahead of the clock" in one.getMessage()]
    assert len(warnings) == 1, "once, by whoever noticed"
    caplog.clear()
    for read_only in (False, True):
        with Database(path, read_only=read_only) as database:
            assert codes(database) == ["database.clock"]
            assert verify(database).ok
    assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 2
    monkeypatch.setattr(time, "time_ns", lambda: LATER_NS)
    with Database(path) as database:
        assert codes(database) == []


def test_a_commit_a_little_ahead_is_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    with Database(path) as database:
        with monkeypatch.context() as patched:
            patched.setattr(time, "time_ns", lambda: now + 50 * 10**9)
            put(database, "a")
        assert codes(database) == []


def test_a_clock_before_1970_is_an_error_in_words(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(path) as database:
        put(database, "a")
        with monkeypatch.context() as patched:
            patched.setattr(time, "time_ns", lambda: -86_400 * 10**9)
            for content in (b"", b"x", b"x" * (WHOLE_LIMIT * 4)):
                with pytest.raises(ServiceUnavailable, match="clock of this machine stands before 1970"):
                    put(database, "b", content)
            with (
                pytest.raises(ServiceUnavailable, match="before 1970"),
                database.transaction() as transaction,
            ):
                transaction.delete(("a",))
            with pytest.raises(ServiceUnavailable, match="before 1970"):
                Database(path.with_name("new.svcdb"))
            assert not path.with_name("new.svcdb").exists()
            with Database(path) as other:
                assert verify(other).ok
        put(database, "b")
        assert [name for name, _ in database.at().entries(())] == ["a", "b"]
    with Database(path) as database:
        assert verify(database).ok


def test_an_orderly_close_with_a_clock_before_1970_keeps_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(path) as database:
        put(database, "a")
        monkeypatch.setattr(time, "time_ns", lambda: -86_400 * 10**9)
    monkeypatch.undo()
    with Database(path) as database:
        assert verify(database).ok
