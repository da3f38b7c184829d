"""Naming a version in words: times, snapshots, forks and hashes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.database import Database, parse_time
from svc.database.naming import commit_state
from svc.errors import CorruptRecord, InvalidInput, NotFound
from svc.hashing import Hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00", 0),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01t00:00:01.5z", 1500),
        ("1970-01-01T00:00:00,0019Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T01:00:00 01:00", 0),
        ("1969-12-31T22:30:00-0130", 0),
        ("2016-12-31T23:59:60Z", 1483228800000),
        ("0", 0),
        (" 1700000000123 ", 1700000000123),
    ],
)
def test_a_time_is_read_as_it_is_written(text: str, expected: int) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-13-01",
        "2026-02-30",
        "0000-01-01",
        "2026-01-01T24:00:00Z",
        "2026-01-01T10:60:00Z",
        "2026-01-01T10:00:61Z",
        "2026-01-01T10:00:00+24:00",
        "2026-01-01T10:00:00+01:60",
        "2026-01-01T10",
        "2026-1-1",
        "-1",
        "1" * 16,
        "999999999999999",
        "\u0661\u0662\u0663",
        "\uff12\uff10\uff12\uff16-01-01",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_time(text)


@given(st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_every_time_that_python_writes_is_read(moment: datetime) -> None:
    expected = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000 + 1e-6)
    assert abs(parse_time(moment.isoformat()) - expected) <= 1


def _history(database: Database, monkeypatch: pytest.MonkeyPatch, times: list[int]) -> list[Hash]:
    """One commit at each time; returns the roots."""
    roots = []
    for number, time_ms in enumerate(times):
        monkeypatch.setattr("time.time", lambda now=time_ms: now / 1000)
        monkeypatch.setattr("time.time_ns", lambda now=time_ms: now * 1_000_000)
        with database.transaction() as transaction:
            transaction.put(("count.txt",), str(number).encode())
        assert transaction.result is not None
        roots.append(transaction.result.version)
    return roots


def test_head_at_a_time_is_what_the_last_commit_before_it_left(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [1000, 2000, 2000, 5000, 9000]
    roots = _history(database, monkeypatch, times)
    kept = [database.commit_state(number) for number in range(1, 6)]
    assert kept == list(zip(times, roots, strict=True))
    assert kept == [(commit.time_ms, commit.root) for commit in database.commits()]
    for time_ms in (*times, 1999, 2001, 4999, 10**12):
        expected = max(number for number, one in enumerate(times) if one <= time_ms)
        assert database.head_at(time_ms) == roots[expected]
        assert database.resolve_version(at=time_ms) == roots[expected]


def test_before_the_first_commit_there_is_no_version(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFound):
        database.head_at(10**12)
    _history(database, monkeypatch, [5000])
    with pytest.raises(NotFound):
        database.head_at(4999)


def test_a_time_counts_only_when_nothing_else_names_the_version(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _history(database, monkeypatch, [1000, 2000])
    with database.transaction() as transaction:
        transaction.set_ref("forks/draft", first)
        transaction.set_ref("snapshots/kept", first)
    assert database.resolve_version(version=first.hex(), at=2000) == first
    assert database.resolve_version(fork="draft", at=2000) == first
    assert database.resolve_version(snapshot="kept", at=2000) == first
    assert database.resolve_version(at=2000) == second


def test_a_version_is_named_by_what_a_person_writes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _history(database, monkeypatch, [1000, 86_400_000])
    with database.transaction() as transaction:
        transaction.set_ref("forks/draft", first)
        transaction.set_ref("snapshots/monday", first)
        transaction.set_ref("snapshots/1970-01-02", first)
        transaction.set_ref("snapshots/forks/draft", second)
    assert database.named_version("HEAD") == second
    assert database.named_version(first.hex()) == first
    assert database.named_version(first.hex().upper()) == first
    assert database.named_version("monday") == first
    assert database.named_version("snapshots/monday") == first
    assert database.named_version("1970-01-02") == first, "a snapshot's name wins over a date"
    assert database.named_version("1970-01-02T00:00Z") == second
    assert database.named_version("1000") == first
    assert database.named_version("forks/draft") == first, "what says that it is a fork is one"
    assert database.named_version("snapshots/forks/draft") == second


@pytest.mark.parametrize(
    "text", ["", "nobody", "forks/none", "00" * 32, "x" * 300, "a\x00b", "forks/", "\udcff"]
)
def test_a_name_of_nothing_is_not_found(database: Database, text: str) -> None:
    with pytest.raises(NotFound):
        database.named_version(text)


def test_the_first_commit_of_a_root_is_known(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _history(database, monkeypatch, [1000, 2000])
    with database.transaction() as transaction:
        transaction.put_system(("note",), b"the files stay as they are")
    assert (database.commit_of(first), database.commit_of(second)) == (1, 2)
    assert database.commit_of(b"\x07" * 32) is None


@pytest.mark.parametrize(
    "payload", [b"", b"\x8c", b"\x8c\x01\x02\xf6\x20", b"\x8c\x01\x02\xf6\x61a", b"\xff" * 70]
)
def test_the_state_of_what_is_no_commit_is_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptRecord):
        commit_state(payload)
