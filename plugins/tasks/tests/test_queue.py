"""The queue: records that many processes change at once."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest
from svc_tasks.api import Task, list_tasks
from svc_tasks.queue import KEPT, KEPT_MS, MAXIMUM_PENDING, Queue, finished
from svc_tasks.records import encode, new_task_id, now_ms, record_file
from svc_tasks.running.choosing import next_task

from svc.errors import Conflict, InvalidInput, NotFound, ServiceUnavailable


@pytest.fixture
def queue(work: Any) -> Queue:
    return Queue(work.database)


def test_the_same_work_is_not_enqueued_twice_while_it_waits_or_runs(work: Any, queue: Queue) -> None:
    first = work.add("count", to=3)
    assert work.add("count", to=3, batch=1) == first
    other = work.add("count", to=4)
    assert other.id > first.id
    queue.change(first.id, lambda task: msgspec.structs.replace(task, status="running"), "begin")
    assert work.add("count", to=3).id == first.id
    queue.change(first.id, lambda task: finished(task, "completed"), "end")
    again = work.add("count", to=3)
    assert again.id not in (first.id, other.id)
    assert [task.id for task in list_tasks(work.database)] == [again.id, other.id, first.id]
    assert [task.id for task in queue.active()] == [other.id, again.id]


def test_of_many_who_want_the_same_one_enqueues_it(work: Any) -> None:
    found: list[str] = []

    def add() -> None:
        found.append(work.add("count", to=3).id)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(list_tasks(work.database)) == 1


def test_what_waits_is_cancelled_at_once_and_once(work: Any, queue: Queue) -> None:
    task = work.add("count", to=3)
    cancelled = queue.cancel(task.id)
    assert cancelled.status == "cancelled"
    assert queue.cancel(task.id) == cancelled
    assert queue.active() == []
    assert work.add("count", to=3).id != task.id


def test_what_is_over_cannot_be_cancelled(work: Any, queue: Queue) -> None:
    task = work.add("count", to=3)
    queue.change(task.id, lambda one: finished(one, "failed", error="so"), "end")
    with pytest.raises(Conflict, match="failed already"):
        queue.cancel(task.id)


@pytest.mark.parametrize("task_id", ["", "x", "0" * 32, "../../users", "0" * 31 + "G"])
def test_an_id_of_no_task_is_not_found(queue: Queue, task_id: str) -> None:
    with pytest.raises(NotFound):
        queue.get(task_id)


def test_a_change_that_loses_a_race_is_decided_anew(work: Any, queue: Queue) -> None:
    task = work.add("count", to=3)
    seen: list[int] = []

    def late(one: Task) -> Task:
        if not seen:
            queue.change(one.id, lambda two: msgspec.structs.replace(two, attempts=7), "faster")
        seen.append(one.attempts)
        return msgspec.structs.replace(one, checkpoint="x")

    changed = queue.change(task.id, late, "slower")
    assert seen == [0, 7]
    assert (changed.attempts, changed.checkpoint) == (7, "x")


def add_finished(work: Any, count: int, finished_at: int) -> None:
    with work.database.transaction() as changes:
        for number in range(count):
            task = Task(
                id=new_task_id(work.database),
                task_type="count",
                status="completed",
                args={"n": number},
                created_at=finished_at,
                finished_at=finished_at,
            )
            changes.put_system(record_file(task.id), encode(task))


def test_finished_tasks_are_kept_for_a_day(work: Any, queue: Queue) -> None:
    add_finished(work, 3, now_ms() - KEPT_MS - 1_000)
    add_finished(work, 2, now_ms() - KEPT_MS + 60_000)
    work.add("count", to=3)
    assert queue.prune() == 3
    assert len(list_tasks(work.database)) == 3


def test_at_most_a_hundred_finished_tasks_are_kept(work: Any, queue: Queue) -> None:
    add_finished(work, KEPT + 5, now_ms() - 1_000)
    waiting = work.add("count", to=3)
    (done,) = work.finish(waiting)
    left = list_tasks(work.database)
    assert len(left) == KEPT
    assert left[0] == done
    assert queue.prune() == 0


def test_so_many_wait_and_no_more(work: Any, queue: Queue) -> None:
    from svc_tasks.records import active_file

    with work.database.transaction() as changes:
        for number in range(MAXIMUM_PENDING):
            changes.put_system(active_file(f"{number:032}"), b"")
    with pytest.raises(ServiceUnavailable) as refused:
        work.add("count", to=3)
    assert refused.value.details["retry_after"] == 60


def test_a_record_that_cannot_be_read_is_none(work: Any, queue: Queue) -> None:
    task = work.add("count", to=3)
    with work.database.transaction() as changes:
        changes.put_system(record_file("f" * 32), b'{"id": 1}')
        changes.put_system(record_file("e" * 32), b"\xff")
    assert [one.id for one in list_tasks(work.database)] == [task.id]
    with pytest.raises(NotFound):
        queue.get("f" * 32)
    queue.prune()


@pytest.mark.parametrize("how", ["raise", "exit", "object", "list", "huge"])
def test_a_type_that_cannot_check_its_arguments_refuses_them(work: Any, how: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        work.add("bad-check", how=how)
    assert refused.value.details["field"] == "args"


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"to": "three"}, "to"),
        ({"until": 3}, "until"),
        ({"to": 3, "pause": None}, "pause"),
    ],
)
def test_an_argument_that_is_wrong_is_named(work: Any, args: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        work.add("count", **args)
    assert refused.value.details["field"] == field


def test_ids_increase_although_the_clock_is_set_back(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_task_id(work.database)
    monkeypatch.setattr("svc_tasks.records.now_ms", lambda: 1_000)
    later = [new_task_id(work.database) for _ in range(100)]
    assert [before, *later] == sorted({before, *later})


def task_of(kind: str, number: int) -> Task:
    return Task(id=f"{number:032}", task_type=kind, status="pending", args={}, created_at=number)


def order_of(waiting: list[Task], at_once: int, exclusive: dict[str, bool]) -> list[str]:
    """The types in the order in which tasks begin, where each ends when the next may begin."""
    turns: dict[str, int] = {}
    running: list[Task] = []
    begun: list[str] = []
    while waiting:
        if len(running) == at_once:
            running.pop(0)
        task = next_task(waiting, running, exclusive, turns)
        if task is None:
            running.pop(0)
            continue
        waiting.remove(task)
        running.append(task)
        begun.append(task.task_type)
        turns[task.task_type] = len(begun)
    return begun


def test_types_take_turns_however_many_tasks_of_one_wait() -> None:
    waiting = [task_of("many", number) for number in range(20)] + [task_of("one", 30), task_of("two", 40)]
    begun = order_of(waiting, 2, {"many": False, "one": True, "two": True})
    assert {"one", "two"} <= set(begun[:4])


def test_within_a_type_the_oldest_is_first_and_unknown_types_wait() -> None:
    waiting = [task_of("gone", 1), task_of("a", 2), task_of("a", 3)]
    found = next_task(waiting, [], {"a": True}, {})
    assert found is waiting[1]
    assert next_task(waiting, [waiting[1]], {"a": True}, {}) is None
    assert next_task(waiting, [], {"a": True}, {}, {waiting[1].id}) is waiting[2]
