"""Turns for others: what ``pause`` lets run."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
from gevent import monkey
monkey.patch_all()
import socket
import gevent
from svc.database.blocking import pause

near, far = socket.socketpair()
received = []
reader = gevent.spawn(lambda: received.append(near.recv(1)))
pause()
far.send(b"x")
for _ in range(3):
    pause()
    if received:
        break
print(received)
"""


def test_a_socket_that_became_ready_is_served_within_a_few_pauses() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[b'x']", done.stderr


def test_without_gevent_there_is_nobody_to_wait_for() -> None:
    script = "from svc.database.blocking import pause; import sys; pause(); print('gevent' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


_PATCHED_LATER = """
from svc.database.committer import CommitRequest
from svc.objects.store import PendingObjects
from gevent import monkey, spawn
monkey.patch_all()
from svc.database.blocking import wait_for
waiting = CommitRequest("HEAD", [], PendingObjects())
print(type(waiting.wake).__module__)
waiter = spawn(wait_for, waiting.wake)
monkey.get_original("_thread", "start_new_thread")(waiting.wake.set, ())
waiter.get(timeout=10)
print("woken")
"""


def test_who_waits_for_a_commit_is_woken_by_any_thread_also_where_gevent_came_late() -> None:
    done = subprocess.run([sys.executable, "-c", _PATCHED_LATER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gevent._gevent_cevent", "woken"], done.stderr
