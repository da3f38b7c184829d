"""Greenlets and native threads ask for one thing at once, and each of them gets it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CONTENTION = """
from gevent import monkey; monkey.patch_all()
import logging, random, sys, time
import gevent
from svc.native_locks import held_across_waits, native_lock, native_reentrant_lock
from svc.pipeline.address_log import AddressLog

# What a worker does: of a logger's levels logging keeps a table under a lock of its own.
logging._lock = native_reentrant_lock()
sys.setswitchinterval(1e-5)
pool = gevent.get_hub().threadpool
pool.maxsize = 6

def across_waits():
    lock = native_lock()
    def use():
        for _ in range(random.randrange(1, 4)):
            with held_across_waits(lock):
                time.sleep(random.choice((0, 0.001, 0.003)))
    return use

def again():
    lock, inside = native_reentrant_lock(), [0]
    def use():
        for _ in range(200):
            with lock, lock:
                inside[0] += 1
                assert inside[0] == 1
                inside[0] -= 1
    return use

def addresses():
    logger = logging.Logger("quiet", logging.CRITICAL)
    log = AddressLog(logger, "lines")
    def use():
        for number in range(200):
            log.warn_about("a line", f"10.0.0.{number % 7}", {})
    return use

for number in range(60):
    use = globals()[sys.argv[1]]()
    workers = [random.choice((pool.spawn, gevent.spawn))(use) for _ in range(6)]
    ended = gevent.wait(workers, timeout=60)
    assert len(ended) == len(workers), f"round {number}: one waits for ever"
    for one in ended:
        one.get()
"""


@pytest.mark.parametrize("what", ["across_waits", "again", "addresses"])
def test_none_waits_for_ever(what: str) -> None:
    subprocess.run([sys.executable, "-c", _CONTENTION, what], check=True, timeout=110)
