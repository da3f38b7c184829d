"""Tasks run in processes of their own: what they do wrong costs themselves alone."""

from __future__ import annotations

import logging
import os
import signal
import time
from typing import Any

import pytest
from svc_tasks.api import progress_of
from svc_tasks.queue import Queue

GIB = 1 << 30


def counted(work: Any, name: str = "count") -> list[str]:
    return [entry for entry, _ in work.database.at().entries(("counted", name))]


def numbers(count: int) -> list[str]:
    return [f"{number:06}" for number in range(count)]


def test_a_task_is_done_and_says_what_came_of_it(work: Any) -> None:
    (done,) = work.finish(work.add("count", to=5))
    assert (done.status, done.result, done.error, done.attempts) == ("completed", {"counted": 5}, None, 0)
    assert done.created_at <= done.started_at <= done.finished_at
    assert done.checkpoint is None
    assert counted(work) == numbers(5)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raise", "RuntimeError: the moon is full"),
        ("refuse", "This is not to be."),
        ("exit", "SystemExit: 3"),
        ("huge", "The result of a task of the type 'huge' has 100,011 bytes, and may have 65,536."),
        ("odd", "This is not JSON"),
    ],
)
def test_what_a_run_raises_is_the_error_of_its_task(work: Any, name: str, words: str) -> None:
    (failed,) = work.finish(work.add(name))
    assert failed.status == "failed"
    assert failed.error.startswith(words)


@pytest.mark.parametrize(("name", "words"), [("vanish", "ended with code 7"), ("crash", "crashed (SIGSEGV)")])
def test_a_process_that_dies_is_tried_again_and_then_given_up(work: Any, name: str, words: str) -> None:
    (failed,) = work.finish(work.add(name), maximum_attempts=2)
    assert failed.status == "failed"
    assert failed.error.startswith(f"It did not get on, 2 times in a row: its process {words}")


def test_a_leak_ends_with_its_own_process(work: Any) -> None:
    (failed,) = work.finish(work.add("leak"), task_memory=GIB // 2)
    assert failed.status == "failed"
    assert failed.error == "It needs more memory than the 512 MiB that a task may have."


def test_what_hangs_is_killed_when_it_gives_no_sign_of_life(work: Any) -> None:
    hanging = work.add("hang")
    other = work.add("count", to=3)
    first, second = work.finish(hanging, other, stall_seconds=2.0)
    assert first.error == "It gave no sign of life for 2 seconds and was killed."
    assert second.status == "completed"


def test_what_a_task_prints_and_logs_does_not_speak_for_it(work: Any, caplog: Any) -> None:
    with caplog.at_level(logging.INFO):
        (done,) = work.finish(work.add("babble"))
    assert done.result == {"said": True}
    (line,) = [record for record in caplog.records if record.message == "said to the log"]
    assert line.name == "svc.plugin.acme.strange"
    assert line.fields["task"] == done.id


def test_state_changes_are_logged_and_arguments_are_not(work: Any, caplog: Any) -> None:
    with caplog.at_level(logging.INFO):
        work.finish(work.add("tell", token="hunter2"))
    told = [record.fields["status"] for record in caplog.records if record.message == "task"]
    assert told == ["pending", "running", "completed"]
    assert not any("hunter2" in str(record.__dict__) for record in caplog.records)


def test_a_task_has_the_settings_of_its_plugin_and_yields_to_requests(work: Any) -> None:
    (done,) = work.finish(work.add("tell", a=1))
    assert done.result["password"] == "none"
    assert done.result["niceness"] >= 10
    assert done.result["args"] == {"a": 1}


def test_a_running_task_ends_between_two_batches_when_it_is_cancelled(work: Any) -> None:
    task = work.add("count", to=10_000, pause=0.01)
    with work.supervisor() as supervisor:
        work.tick_until(supervisor, lambda: work.task(task).checkpoint)
        assert Queue(work.database).cancel(task.id).status == "running"
        work.tick_until(supervisor, lambda: work.task(task).is_finished)
    cancelled = work.task(task)
    assert (cancelled.status, cancelled.error) == ("cancelled", None)
    assert counted(work) == numbers(len(counted(work)))
    assert 0 < len(counted(work)) < 10_000


def test_what_does_not_end_when_it_is_cancelled_is_killed(work: Any) -> None:
    tasks = [work.add("stubborn"), work.add("hang")]
    with work.supervisor(cancel_seconds=0.5) as supervisor:
        work.tick_until(supervisor, lambda: all(work.task(task).status == "running" for task in tasks))
        for task in tasks:
            Queue(work.database).cancel(task.id)
        work.tick_until(supervisor, lambda: all(work.task(task).is_finished for task in tasks))
    assert [work.task(task).status for task in tasks] == ["cancelled", "cancelled"]


def test_progress_and_remaining_time_are_told_to_everybody(work: Any) -> None:
    task = work.add("count", to=40, pause=0.05)
    seen = []
    with work.supervisor() as supervisor:

        def is_half_done() -> bool:
            told = progress_of(work.database).get(task.id)
            if told is not None and told.eta_ms is not None:
                seen.append(told)
            return bool(seen) and seen[-1].indexed_count >= 20

        work.tick_until(supervisor, is_half_done)
    last = seen[-1]
    assert (last.task_type, last.total_count) == ("count", 40)
    assert last.progress == last.indexed_count / 40
    assert last.message == f"at {last.indexed_count}"
    assert last.eta_ms >= (40 - last.indexed_count) * 50
    assert [one.indexed_count for one in seen] == sorted(one.indexed_count for one in seen)
    assert progress_of(work.database) == {}


def test_a_run_that_is_told_to_end_goes_on_later_without_an_attempt_lost(work: Any) -> None:
    task = work.add("count", to=30, pause=0.02)
    with work.supervisor() as supervisor:
        work.tick_until(supervisor, lambda: work.task(task).checkpoint)
        supervisor.stop()
    stopped = work.task(task)
    assert (stopped.status, stopped.attempts) == ("pending", 0)
    assert stopped.checkpoint == len(counted(work)) > 0
    (done,) = work.finish(task)
    assert done.status == "completed"
    assert counted(work) == numbers(30)


def test_a_task_whose_runner_died_is_run_again_from_its_checkpoint(work: Any) -> None:
    task = work.add("count", to=30, pause=0.02)
    with work.supervisor() as supervisor:
        work.tick_until(supervisor, lambda: work.task(task).checkpoint)
        supervisor.abandon()
    assert work.task(task).status == "running"
    (done,) = work.finish(task)
    assert (done.status, done.result) == ("completed", {"counted": 30})
    assert counted(work) == numbers(30)


def test_a_task_that_never_gets_on_is_given_up(work: Any) -> None:
    task = work.add("endless")
    for _ in range(3):
        with work.supervisor(maximum_attempts=3) as supervisor:
            work.tick_until(supervisor, lambda: work.task(task).is_finished or bool(supervisor.processes))
    with work.supervisor(maximum_attempts=3):
        failed = work.task(task)
    assert failed.status == "failed"
    assert failed.error == "It did not get on, 3 times in a row: the process that ran it ended."


def test_so_many_run_at_once_and_one_of_an_exclusive_type(work: Any) -> None:
    tasks = [work.add("count", name=f"c{number}", to=8, pause=0.02) for number in range(2)]
    tasks += [work.add("together", name=f"t{number}", to=8, pause=0.02) for number in range(3)]
    seen: list[list[str]] = []
    with work.supervisor(tasks_at_once=3) as supervisor:

        def all_done() -> bool:
            seen.append(sorted(one.task.task_type for one in supervisor.processes.values()))
            return all(work.task(task).is_finished for task in tasks)

        work.tick_until(supervisor, all_done)
    assert max(map(len, seen)) == 3
    assert max(one.count("count") for one in seen) == 1
    assert max(one.count("together") for one in seen) >= 2
    assert {work.task(task).status for task in tasks} == {"completed"}


def test_long_tasks_of_other_types_give_way_and_go_on_later(work: Any) -> None:
    long = [work.add("count", to=100_000, pause=0.01), work.add("together", to=100_000, pause=0.01)]
    with work.supervisor(turn_seconds=0.5) as supervisor:
        work.tick_until(supervisor, lambda: all(work.task(task).checkpoint for task in long))
        short = work.add("babble")
        work.tick_until(supervisor, lambda: work.task(short).is_finished)
        assert work.task(short).status == "completed"
        work.tick_until(supervisor, lambda: len(supervisor.processes) == 2)
        assert {work.task(task).status for task in long} == {"running"}
        assert {work.task(task).attempts for task in long} == {0}


def test_a_process_of_a_task_dies_with_its_runner(work: Any) -> None:
    """The runner here is a thread: Linux ends the children of a thread when it ends."""
    import threading

    work.add("hang")
    left: list[Any] = []

    def run() -> None:
        with work.supervisor() as supervisor:
            work.tick_until(supervisor, lambda: any(one.has_spoken for one in supervisor.processes.values()))
            left.extend(supervisor.processes.values())
            # Forgotten, so that nobody ends it in good order.
            supervisor._running.clear()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    (process,) = left
    deadline = time.monotonic() + 30
    while not process.take():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.end()
    assert process.words_of_end() == "was killed, perhaps for want of memory"


def test_a_run_that_was_overtaken_changes_nothing(work: Any) -> None:
    """A record that says another run has begun is not this one's to write."""
    import msgspec

    task = work.add("count", to=10_000, pause=0.01)
    with work.supervisor() as supervisor:
        work.tick_until(supervisor, lambda: work.task(task).checkpoint)
        Queue(work.database).change(
            task.id, lambda one: msgspec.structs.replace(one, started_at=1, checkpoint="other"), "overtake"
        )
        (process,) = supervisor.processes.values()
        work.tick_until(supervisor, lambda: task.id not in supervisor.processes)
    left = work.task(task)
    assert (left.started_at, left.checkpoint, left.status) == (1, "other", "running")
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)
