"""What an answer reads is held until it is sent, but not for as long as a slow client likes."""

from __future__ import annotations

from collections.abc import Iterator

import falcon
import pytest

from svc.database import Database
from svc.pipeline import responses, send_stream


def pieces() -> Iterator[bytes]:
    yield b"a"
    yield b"b"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(responses.time, "monotonic", lambda: now[0])
    return now


def test_until_it_is_sent(database: Database, clock: list[float]) -> None:
    resp = falcon.Response()
    send_stream(resp, pieces(), 2, hold=database.hold())
    generation = database.holds.state()[0]
    assert next(resp.stream) == b"a"
    clock[0] += responses.LONGEST_HOLD_SECONDS
    assert next(resp.stream) == b"b"
    assert database.holds.is_held_before(generation + 1)
    with pytest.raises(StopIteration):
        next(resp.stream)
    assert not database.holds.is_held_before(generation + 1)


def test_for_an_hour_at_most(database: Database, clock: list[float]) -> None:
    resp = falcon.Response()
    send_stream(resp, pieces(), 2, hold=database.hold())
    generation = database.holds.state()[0]
    assert next(resp.stream) == b"a"
    assert database.holds.is_held_before(generation + 1)
    clock[0] += responses.LONGEST_HOLD_SECONDS + 1
    assert next(resp.stream) == b"b", "it goes on"
    assert not database.holds.is_held_before(generation + 1)


def test_until_the_client_leaves(database: Database) -> None:
    resp = falcon.Response()
    send_stream(resp, pieces(), 2, hold=database.hold())
    generation = database.holds.state()[0]
    next(resp.stream)
    resp.stream.close()
    assert not database.holds.is_held_before(generation + 1)
