"""Memory that is given back: where new small objects go, and what is made ahead."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from scripted import SETTINGS

from svc_worker import sweep
from svc_worker.memory import prefer_full_pools, shrink

_OBJECTS = """
import sys
from svc_worker.memory import prefer_full_pools

LENGTH = 400 - sys.getsizeof(b"")  # of objects in a class of sizes that little else is of

def new(count):
    return [bytes(LENGTH) for _ in range(count)]

def pools(objects):
    return {id(item) // 16384 for item in objects}

made = new(8000)
nearly_empty = made[:4000:80]
nearly_full = [item for number, item in enumerate(made[4000:]) if number % 10]
# From the last to the first, so that the nearly empty ones get their gaps last.
while made:
    made.pop()
emptiest = pools(nearly_empty) - pools(nearly_full)
assert len(emptiest) > 20
assert pools(new(100)) & emptiest
prefer_full_pools()
assert not pools(new(100)) & emptiest
"""


def test_new_small_objects_go_where_the_fewest_gaps_are() -> None:
    """In a new process: what others have left in the heap would decide."""
    subprocess.run([sys.executable, "-c", _OBJECTS], timeout=60, check=True)


def test_nothing_is_kept_by_it() -> None:
    prefer_full_pools()
    before = sys.getallocatedblocks()
    for _ in range(5):
        prefer_full_pools()
    assert abs(sys.getallocatedblocks() - before) < 100


def test_what_is_made_ahead_waits_where_no_descriptor_is_left() -> None:
    code = (
        "import os, resource, gevent; gevent.sleep(0); from svc_worker.memory import make_ahead;"
        "used = os.open('/dev/null', 0);"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1,) * 2); make_ahead()"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_another_allocator_is_left_alone() -> None:
    code = (
        "import tracemalloc; from svc_worker.memory import prefer_full_pools; tracemalloc.start();"
        "prefer_full_pools(); print(tracemalloc.get_traced_memory()[1])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONMALLOC": "malloc"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(run.stdout) < 16_000_000


def test_a_set_that_was_large_takes_what_its_members_need() -> None:
    members = set(range(6000))
    for number in range(10, 6000):
        members.discard(number)
    shrink(members)
    assert members == set(range(10))
    assert sys.getsizeof(members) < 2000


class _Gone:
    """A stream that waits for nothing."""

    deadline = sweep.NEVER


def test_memory_is_given_back_when_many_have_left_and_again_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    given: list[float] = []
    dropped: list[float] = []
    monkeypatch.setattr(sweep.time, "monotonic", lambda: now)
    monkeypatch.setattr(sweep, "trim", lambda: given.append(now - 1000))
    streams = {_Gone() for _ in range(sweep.TRIM_AFTER)}
    looking = sweep.Sweep(streams, set(), SETTINGS, lambda: dropped.append(now - 1000))
    looking.run()
    streams.clear()
    for _ in range(200):
        now += sweep.SWEEP_SECONDS
        looking.run()
    assert dropped == [1.25]
    assert [later - earlier for earlier, later in pairwise(given)] == [0.25, 0.5, 1, 2, 4, 8]
