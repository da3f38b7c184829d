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


_DEAR = """
import threading, time
from svc.executor import run_blocking, use_executor
from svc_server.gevent_executor import GeventExecutor
executor = GeventExecutor()
use_executor(executor)
native = gevent.monkey.get_original("time", "sleep")
going, most, order = [], [0], []
def block(client):
    going.append(client)
    most[0] = max(most[0], len(going))
    native(0.01)
    going.remove(client)
def work(client):
    executor.work_for(client)
    executor.begin_dear_work()
    run_blocking(block, client)
    executor.end_dear_work()
    order.append(client)
many = [gevent.spawn(work, "many") for _ in range(60)]
gevent.sleep(0.02)
began = len(order)
gevent.spawn(work, "few").join()
print(order.index("few") - began <= 6, most[0] <= 3)
run_blocking(block, "small")  # in no turn
gevent.joinall(many, timeout=30)
print(len(order))
"""


def test_dear_work_of_many_leaves_threads_and_turns_to_others() -> None:
    assert run(_DEAR) == "True True\n61"


_LEFT_BEFORE_ITS_TURN = """
from types import SimpleNamespace
from svc.executor import use_executor
from svc.pipeline import dear_work
from svc_server.gevent_executor import GeventExecutor
from svc_worker.turns import Abandoned, abandon
executor = GeventExecutor()
use_executor(executor)
call = SimpleNamespace(identity_or_none=None, client_address="::1")
begun, told = [], []
def work():
    try:
        with dear_work(call):
            begun.append(1)
    except Abandoned:
        told.append(1)
greenlets = [gevent.spawn(work) for _ in range(20)]
gevent.sleep(0)
for greenlet in greenlets[5:]:
    abandon(greenlet)
gevent.joinall(greenlets, timeout=30)
print(len(begun), len(told), len(executor._dear), executor._thread_turns.is_wanted)
"""


def test_who_leaves_before_its_turn_is_forgotten() -> None:
    assert run(_LEFT_BEFORE_ITS_TURN) == "5 15 0 False"


_CROWDED = """
from types import SimpleNamespace
from gevent.event import Event
from svc.errors import RateLimited, ServiceUnavailable
from svc.executor import use_executor
from svc.operations import Weight
from svc.pipeline.fairness import in_turn
from svc_server.gevent_executor import GeventExecutor
executor = GeventExecutor()
use_executor(executor)
may_end, begun, refused, others = Event(), [], [], []
def respond(req, resp):
    begun.append(req.context.client_address)
    may_end.wait()
responder = in_turn(respond, Weight.DEAR)
def ask(client):
    call = SimpleNamespace(identity_or_none=None, client_address=client)
    try:
        responder(SimpleNamespace(context=call), None)
    except (RateLimited, ServiceUnavailable) as error:
        refused.append((error.status, error.details["retry_after"] > 0))
def wait_until(is_so):
    while not is_so():
        gevent.sleep(0.01)
many = [gevent.spawn(ask, "many") for _ in range(8 + 100 + 5)]
wait_until(lambda: len(begun) == 8 and len(refused) == 5)
print(len(begun), refused)
few = [gevent.spawn(ask, "few") for _ in range(2)]
wait_until(lambda: begun.count("few") == 2)
print(begun.count("few"), "which the many do not keep from their turn")
refused.clear()
crowd = [gevent.spawn(ask, f"client-{number // 108}") for number in range(1080)]
wait_until(lambda: len(begun) == 32 and len(refused) == 1080 - 22 - 900)
print(sorted(set(refused)), len(executor._dear))
may_end.set()
gevent.joinall([*many, *few, *crowd], timeout=30)
print(len(begun) + len(refused) + 5, executor._dear_turns.is_wanted, executor._dear)
"""


def test_beyond_the_queue_dear_requests_are_refused_and_told_when_to_come_again() -> None:
    lines = run(_CROWDED).splitlines()
    assert lines[0] == f"8 {[(429, True)] * 5}"
    assert lines[1].startswith("2 ")
    assert lines[2] == f"{[(429, True), (503, True)]} 32"
    assert lines[3] == f"{113 + 2 + 1080} False {{}}"


_PLACES = """
from svc.executor import use_executor, without_turn
from svc_server.gevent_executor import GeventExecutor
from svc_worker.turns import Abandoned, Crowded, Turns, abandon
turns = Turns(1, 1, most_waiting=2, most_of_client=2)
turns.enter("a")
left = []
def wait():
    try:
        turns.enter("a")
    except Abandoned:
        left.append(1)
waiting = [gevent.spawn(wait) for _ in range(2)]
gevent.sleep(0)
try:
    turns.enter("a")
except Crowded as crowded:
    print("crowded", crowded.of_client)
abandon(waiting[0])
waiting[0].join()
print(len(left), "has left its place, nobody's turn has ended")
another = gevent.spawn(wait)
gevent.sleep(0)
print(another.dead)
order = []
def go(client):
    turns.enter(client)
    order.append(client)
    gevent.sleep(0)
    turns.leave(client)
turns = Turns(1, 1)
gevent.joinall([gevent.spawn(go, client) for client in "aaaabbc"], timeout=30)
print("".join(order))

executor = GeventExecutor()
use_executor(executor)
executor.work_for("a")
executor.begin_dear_work()
executor.begin_dear_work()  # nested
executor.end_dear_work()
print(executor._dear_turns._going_on["a"])
with without_turn():
    print(executor._dear_turns._going_on["a"])
print(executor._dear_turns._going_on["a"])
executor.end_dear_work()
print(executor._dear_turns._going_on["a"], executor._dear)
"""


def test_who_leaves_gives_up_its_place_at_once_and_clients_alternate() -> None:
    assert run(_PLACES).splitlines() == [
        "crowded True",
        "1 has left its place, nobody's turn has ended",
        "False",
        "aabcaba",
        *("1", "0", "1", "0 {}"),
    ]
