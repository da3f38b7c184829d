"""What queries keep is shared by greenlets and by the native threads that bring the view up to date."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CONTENTION = """
from gevent import monkey; monkey.patch_all()
import random, sys, tempfile
from pathlib import Path
import gevent
from svc_query.indexing.caches import Caches, SharedReader
from svc_query.indexing.view import IndexView

sys.setswitchinterval(1e-5)
pool = gevent.get_hub().threadpool

def reader():
    shared = SharedReader("name", None)
    def use():
        for _ in range(200):
            assert shared.hold()
            shared.release()
    return use

def readers():
    caches, directory = Caches(), Path("here")
    def use():
        for number in range(100):
            caches.reader(directory, number % 3, b"%d" % number, lambda known: None).release()
            caches.forget_readers(directory, {1})
            caches.library_tail(number % 3, lambda known: (known or 0) + 1)
    return use

def orders():
    view = IndexView()
    def use():
        for _ in range(200):
            order = lambda table, at: None
            view.order(order)
            view.take_back(order)
    return use

for number in range(60):
    use = globals()[sys.argv[1]]()
    workers = [random.choice((pool.spawn, gevent.spawn))(use) for _ in range(6)]
    ended = gevent.wait(workers, timeout=60)
    assert len(ended) == len(workers), f"round {number}: one waits for ever"
    for one in ended:
        one.get()
"""


@pytest.mark.parametrize("what", ["reader", "readers", "orders"])
def test_none_waits_for_ever(what: str) -> None:
    subprocess.run([sys.executable, "-c", _CONTENTION, what], check=True, timeout=110)
