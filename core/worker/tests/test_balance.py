"""New connections go to the worker that has the fewest."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from collections import Counter

import pytest

from svc_worker.balance import (
    MOST_WORKERS,
    PATIENCE_SECONDS,
    SLACK,
    STALE_SECONDS,
    ConnectionCounts,
    Patience,
    Place,
)
from svc_worker.sweep import SWEEP_SECONDS


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def places(clock) -> tuple[Place, Place]:
    counts = ConnectionCounts(clock)
    one, two = counts.reserve(), counts.reserve()
    assert one is not None
    assert two is not None
    return one, two


def test_each_worker_sees_the_smallest_count_of_the_others(places) -> None:
    one, two = places
    one.note_alive(3)
    two.note_alive(2)
    one.note_alive(3)
    assert (one.smallest(), two.smallest()) == (2, 3)
    two.note(7)
    assert one.smallest() == 7


def test_a_worker_that_has_closed_counts_no_more(places) -> None:
    one, two = places
    two.note_alive(0)
    one.note_alive(0)
    assert one.smallest() == 0
    two.note_closed()
    assert one.smallest() is None


def test_a_worker_that_is_not_heard_of_any_more_counts_no_more(places, clock) -> None:
    one, two = places
    two.note_alive(0)
    clock.now += STALE_SECONDS + 0.1
    one.note_alive(0)
    assert one.smallest() is None


def test_places_of_the_dead_are_given_again_and_no_others(clock) -> None:
    counts = ConnectionCounts(clock)
    places = [counts.reserve() for _ in range(MOST_WORKERS)]
    assert None not in places
    assert counts.reserve() is None
    clock.now += STALE_SECONDS + 0.1
    for place in places[1:]:
        place.note_alive(1)
    found = counts.reserve()
    assert found is not None
    found.note_alive(0)
    places[1].note_alive(1)
    assert places[1].smallest() == 0
    assert counts.reserve() is None


def test_who_has_more_than_another_leaves_a_connection_to_it(clock) -> None:
    patience = Patience(clock)
    assert patience.is_left(3 + SLACK, 2)
    assert not patience.is_left(2 + SLACK, 2)
    assert not patience.is_left(2, 3)
    assert not patience.is_left(30, None)


def test_where_nobody_comes_for_a_connection_it_is_taken(clock) -> None:
    patience = Patience(clock)
    assert patience.is_left(9, 2)
    clock.now += 1.01 * PATIENCE_SECONDS
    assert not patience.is_left(9, 2)


def test_where_nobody_ever_comes_little_time_is_lost(clock) -> None:
    patience = Patience(clock)
    began = clock.now
    for own in range(9, 109):
        while patience.is_left(own, 2):
            clock.now += 0.0005
    assert clock.now - began < 2 * PATIENCE_SECONDS + 100 * 0.0005


def test_who_comes_again_is_waited_for_again(clock) -> None:
    patience = Patience(clock)
    for own in range(9, 26):
        while patience.is_left(own, 2):
            clock.now += 0.0005
    assert patience.is_left(26, 3)
    clock.now += 0.9 * PATIENCE_SECONDS
    assert patience.is_left(26, 3)


def test_workers_of_a_server_share_connections(launch) -> None:
    server = launch("-w", "4")
    _open_until_all_serve(server, 4)
    time.sleep(3 * SWEEP_SECONDS)  # until each has looked who else is there
    connections = [http.client.HTTPConnection(*server.address, timeout=20) for _ in range(32)]
    try:
        # All at once, as load comes; each stays open.
        for connection in connections:
            connection.connect()
        served = Counter(_process_that_answers(connection) for connection in connections)
    finally:
        for connection in connections:
            connection.close()
    assert len(served) == 4
    # Eight each, but for what a busy machine makes of it.
    assert max(served.values()) <= 16, served


def test_a_worker_that_is_stopped_keeps_nobody_waiting(launch) -> None:
    server = launch("-w", "2")
    stopped, running = _open_until_all_serve(server, 2)
    os.kill(stopped, signal.SIGSTOP)
    try:
        for _ in range(10):
            connection = http.client.HTTPConnection(*server.address, timeout=5)
            assert _process_that_answers(connection) == running
            connection.close()
    finally:
        os.kill(stopped, signal.SIGCONT)


def _open_until_all_serve(server, workers: int) -> list[int]:
    """Opens connections until each worker has one, closes them, and returns the workers."""
    opened: list[http.client.HTTPConnection] = []
    found: set[int] = set()
    deadline = time.monotonic() + 60
    while len(found) < workers and time.monotonic() < deadline:
        opened.append(http.client.HTTPConnection(*server.address, timeout=20))
        found.add(_process_that_answers(opened[-1]))
    for connection in opened:
        connection.close()
    assert len(found) == workers
    return sorted(found)


def _process_that_answers(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/echo")
    return json.loads(connection.getresponse().read())["process"]
