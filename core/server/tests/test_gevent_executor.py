"""The executor of a server on gevent."""

from __future__ import annotations

import subprocess
import sys

_PATCHED_LATER = """
from svc.database.committer import CommitRequest
from svc.objects.store import PendingObjects
from gevent import monkey, spawn
monkey.patch_all()
from svc_server.gevent_executor import GeventExecutor
waiting = CommitRequest("HEAD", [], PendingObjects())
print(type(waiting.wake).__module__)
waiter = spawn(GeventExecutor().wait_for, waiting.wake)
monkey.get_original("_thread", "start_new_thread")(waiting.wake.set, ())
waiter.get(timeout=10)
print("woken")
"""


def test_who_waits_for_a_commit_is_woken_by_any_thread_also_where_gevent_came_late() -> None:
    done = subprocess.run([sys.executable, "-c", _PATCHED_LATER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gevent._gevent_cevent", "woken"], done.stderr


def run(script: str) -> str:
    """Runs a script under gevent and returns what it prints."""
    start = "from gevent import monkey\nmonkey.patch_all()\nimport gevent\n"
    done = subprocess.run([sys.executable, "-c", start + script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.strip()


_ABANDONED = """
import time
from svc.executor import in_turns, pause, run_blocking, use_executor
from svc_server.gevent_executor import GeventExecutor
from svc_worker.turns import Abandoned, abandon, forget_abandoned
executor = GeventExecutor()
use_executor(executor)
seen = []
def forever():
    try:
        for _ in in_turns(iter(int, 1)):
            pass
    except Abandoned:
        seen.append("ended")
        pause()  # once is enough: what is cleaned up may pause
        raise
def in_a_thread():
    try:
        run_blocking(forever)
    except Abandoned:
        seen.append("told")
def shielded():
    def commit():
        gevent.sleep(0.1)
        pause()
        seen.append("committed")
    try:
        executor.run_shielded(commit)
        pause()
    except Abandoned:
        seen.append("then ended")
def spared():
    gevent.sleep(0.05)
    forget_abandoned(gevent.getcurrent())
    pause()
    seen.append("spared")
def swallow(function):
    try:
        function()
    except Abandoned:
        pass
for function in (forever, in_a_thread, shielded, spared):
    worker = gevent.spawn(swallow, function)
    gevent.sleep(0.02)
    abandon(worker)
    worker.get(timeout=20)
print(*seen, sep=", ")
"""


def test_work_that_nobody_waits_for_ends_at_its_next_turn_and_a_commit_does_not() -> None:
    assert run(_ABANDONED) == "ended, ended, told, committed, then ended, spared"


_POOLS = """
import os
from svc_server.executors import executor_of_process
executor = executor_of_process()
count = gevent.get_hub().threadpool.maxsize + 2
reading, writing = os.pipe()
blocked = [gevent.spawn(executor.run, os.read, reading, 1) for _ in range(count)]
gevent.sleep(0.05)
print(executor.run_reserved(lambda: executor.run(pow, 2, 5)))
os.write(writing, bytes(count))
gevent.joinall(blocked)
wait = executor.begin(pow, 2, "five")
try:
    wait()
except TypeError:
    print("raised here")
"""


def test_reserved_threads_are_free_when_all_others_are_taken() -> None:
    assert run(_POOLS).split("\n") == ["32", "raised here"]


_RESERVED = """
import threading
import time
from svc_server.gevent_executor import GeventExecutor
executor = GeventExecutor()
ended = []
def slow(number):
    time.sleep(0.02)
    ended.append(number)
    if number % 10 == 9:
        raise KeyError(number)
    return number
def call(number):
    try:
        return executor.run_reserved(lambda: slow(number))
    except KeyError as error:
        return error.args[0]
calls = [gevent.spawn(call, number) for number in range(40)]
gevent.sleep(0.001)
calls[0].kill()
calls[39].kill()
print([one.get() for one in calls[1:39]] == list(range(1, 39)))
while len(ended) < 40:
    gevent.sleep(0.01)
print(sorted(ended) == list(range(40)))
print(gevent.spawn(call, 40).get(), gevent.wait(timeout=5))
in_hub = []
gevent.get_hub().loop.run_callback(lambda: in_hub.append(executor.run_reserved(threading.get_native_id)))
gevent.sleep(0.01)
print(in_hub == [threading.get_native_id()])
"""


def test_what_runs_in_reserved_threads_goes_on_when_its_greenlet_is_killed_and_others_get_theirs() -> None:
    assert run(_RESERVED).split("\n") == ["True", "True", "40 True", "True"]


def test_a_process_without_gevent_runs_all_in_place() -> None:
    script = (
        "import sys; from svc_server.executors import executor_of_process;"
        "print(type(executor_of_process()).__name__, 'gevent' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Executor", "False"]


_IDLE = """
import time
from svc_server.gevent_executor import GeventExecutor
executor = GeventExecutor()
hub = gevent.get_hub()
rounds = []
def in_rounds(count):
    for _ in range(count):
        hub.wait(hub.loop.timer(0))
        rounds.append(1)
gevent.spawn(in_rounds, 20)
executor.wait_until_idle(5)
print(len(rounds))
busy = gevent.spawn(in_rounds, 10**9)
began = time.monotonic()
executor.wait_until_idle(0.05)
print(len(rounds) > 20, time.monotonic() - began < 5)
busy.kill()
print(hub.threadpool.apply(executor.wait_until_idle, (5,)))
"""


def test_a_leader_waits_until_the_loop_is_idle_and_not_for_long() -> None:
    assert run(_IDLE).split() == ["20", "True", "True", "None"]
