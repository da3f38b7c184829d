"""Turns for others: what ``pause`` lets run, in which order, and when it ends the work."""

from __future__ import annotations

import subprocess
import sys


def run(script: str) -> str:
    """Runs a script under gevent and returns what it prints."""
    start = "from gevent import monkey\nmonkey.patch_all()\nimport gevent\n"
    done = subprocess.run([sys.executable, "-c", start + script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.strip()


_READY = """
import socket
from svc_worker import pause

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
    assert run(_READY) == "[b'x']"


_BUSY = """
import time
def be_busy():
    ends = time.perf_counter() + 0.0005
    while time.perf_counter() < ends:
        pass
"""
_MANY = """
from svc_worker import pause
rounds, went_on, order = 0, [], []
def work(number):
    pause()
    order.append(number)
    went_on.append(rounds)
    be_busy()
workers = [gevent.spawn(work, number) for number in range(500)]
def count():
    global rounds
    while True:
        rounds += 1
        gevent.get_hub().wait(gevent.get_hub().loop.timer(0))
counter = gevent.spawn(count)
gevent.joinall(workers)
print(max(went_on.count(number) for number in set(went_on)) <= 25, order == list(range(500)))
"""


def test_of_many_that_pause_a_few_go_on_in_each_round_in_the_order_of_coming() -> None:
    assert run(_BUSY + _MANY) == "True True"


_KILLED = """
from svc_worker import pause
done = []
def work(number):
    pause()
    done.append(number)
    be_busy()  # so that no round comes to those that are killed
workers = [gevent.spawn(work, number) for number in range(100)]
gevent.sleep(0)
gevent.killall(workers[10:60], block=True)
gevent.joinall(workers, timeout=10)
gevent.joinall([gevent.spawn(work, number) for number in range(100, 120)], timeout=10)
print(sorted(done) == [*range(10), *range(60, 120)])
"""


def test_those_that_are_killed_while_they_wait_leave_their_turns_to_others() -> None:
    assert run(_BUSY + _KILLED) == "True"


_ABANDONED = """
from svc_worker import Abandoned, pause
from svc_worker.turns import abandon, forget_abandoned
seen = []
def forever():
    try:
        while True:
            pause()
    except Abandoned:
        pause()  # once is enough: what is cleaned up may pause
        seen.append("ended")
def spared():
    gevent.sleep(0.05)
    forget_abandoned(gevent.getcurrent())
    pause()
    seen.append("spared")
for function in (forever, spared):
    worker = gevent.spawn(function)
    gevent.sleep(0.02)
    abandon(worker)
    worker.get(timeout=20)
print(*seen)
"""


def test_work_that_nobody_waits_for_ends_at_its_next_turn() -> None:
    assert run(_ABANDONED) == "ended spared"


_IN_A_THREAD = """
from svc_worker import Abandoned, pause
from svc_worker.turns import abandon, run_on_behalf_of
def forever():
    try:
        while True:
            pause()
    except Abandoned:
        return "ended"
def work():
    return gevent.get_hub().threadpool.apply(run_on_behalf_of, (gevent.getcurrent(), forever))
worker = gevent.spawn(work)
gevent.sleep(0.02)
abandon(worker)
print(gevent.get_hub().threadpool.apply(pause), worker.get(timeout=20))
"""


def test_a_thread_ends_its_work_when_nobody_waits_for_the_greenlet_that_waits_for_it() -> None:
    assert run(_IN_A_THREAD) == "None ended"


_CLIENTS = """
from svc_worker.turns import pause, work_for
turns = {"many": 0, "few": 0}
done = []
def work(client, times):
    work_for(client)
    for _ in range(times):
        pause()
        turns[client] += 1
        be_busy()
    done.append(client)
many = [gevent.spawn(work, "many", 20) for _ in range(200)]
gevent.sleep(0)
few = gevent.spawn(work, "few", 10)
few.join()
print(turns["few"], turns["many"] <= 80)
gevent.joinall(many, timeout=60)
print(turns["many"])
"""


def test_a_client_with_one_greenlet_does_not_wait_for_all_of_another_s() -> None:
    assert run(_BUSY + _CLIENTS) == "10 True\n4000"


_ONE_ROUND = """
from svc_worker.turns import pause
rounds, turns = 0, 0
def work():
    global turns
    for _ in range(50):
        pause()
        turns += 1
def count():
    global rounds
    while True:
        rounds += 1
        gevent.get_hub().wait(gevent.get_hub().loop.timer(0))
counter = gevent.spawn(count)
gevent.joinall([gevent.spawn(work) for _ in range(3)])
print(turns, rounds >= 50)
"""


def test_who_pauses_again_waits_for_another_round() -> None:
    assert run(_ONE_ROUND) == "150 True"


_BOUNDED = """
from svc_worker.turns import Turns
turns = Turns(3, 2)
going, most = [], {}
def work(client):
    turns.enter(client)
    going.append(client)
    most[client] = max(most.get(client, 0), going.count(client))
    most["all"] = max(most.get("all", 0), len(going))
    gevent.sleep(0.001)
    going.remove(client)
    turns.leave(client)
workers = [gevent.spawn(work, client) for client in "a" * 30 + "b" * 5 + "c"]
gevent.sleep(0)
killed = gevent.spawn(work, "a")
gevent.sleep(0)
killed.kill()
gevent.joinall(workers, timeout=30)
print(most["a"], most["b"], most["all"], going, turns.is_wanted)
"""


def test_few_go_on_at_a_time_and_fewer_of_one_client() -> None:
    assert run(_BOUNDED) == "2 2 3 [] False"
