"""What a reindex does: batches, checkpoints, flushes, the breaker, and what it leaves alone."""

from __future__ import annotations

import os
from typing import Any

import pytest
from svc_query.api import reindex_of
from svc_query.indexing import keys as index_keys
from svc_query.testing.indexed_database import Indexed, Source, contents_of
from svc_task_reindex.task import REINDEX
from svc_tasks.api import TaskCancelled, TaskStopped

from svc.errors import InvalidInput, NotFound, SvcError
from svc.plugin import files_with_records
from svc_testing.old_records import make_record_old

from .conftest import FIELD, Runner  # noqa: TID252

BREAKER = "circuit breaker: 10 consecutive indexing failures"


def numbers(indexed: Indexed) -> dict[str, int]:
    """The number of the document at each path: another one means that it was made anew."""
    found: dict[str, int] = indexed.read(
        lambda snapshot: {"/".join(path): number for path, number in snapshot.in_path_order(())}
    )
    return found


def fill(indexed: Indexed, count: int, directory: str = "/d") -> None:
    indexed.configure(directory, FIELD)
    indexed.put({f"{directory}/{number:04}.json": {"title": f"t{number}"} for number in range(count)})
    indexed.finish()


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"path": 5}, "path"),
        ({"path": "/.svc-system/x"}, "path"),
        ({"index_flush_writes": 0}, "index_flush_writes"),
        ({"index_flush_ms": "soon"}, "index_flush_ms"),
        ({"force": "yes"}, "force"),
        ({"fast": True}, "fast"),
    ],
)
def test_wrong_arguments_are_refused_by_name(args: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        REINDEX.normalize(args, None)
    assert refused.value.details["field"] == field


def test_arguments_have_the_defaults_of_the_specification() -> None:
    assert REINDEX.normalize({"path": "d//e/"}, None) == {
        "path": "/d/e",
        "metadata_only": False,
        "force": False,
        "index_flush_writes": 262_144,
        "index_flush_ms": 30_000,
    }


def test_what_the_index_has_done_already_is_not_done_again(indexed: Indexed, run: Runner) -> None:
    fill(indexed, 120)
    before = numbers(indexed)
    context = run.context(path="/d")
    result = run(context)
    assert context.begun == [(121, 0)]
    assert context.batches == [50, 50, 21], "batches of 50; the configuration is a file, too"
    assert (result["files"], result["indexed"], result["failed"]) == (121, 0, 0)
    assert numbers(indexed) == before
    assert context.saved == [], "nothing to go on from"


def test_force_makes_everything_below_the_path_anew_and_nothing_else(indexed: Indexed, run: Runner) -> None:
    fill(indexed, 60)
    indexed.put({"/other.json": {"title": "x"}})
    indexed.finish()
    before, contents = numbers(indexed), indexed.contents()
    result = run(path="/d", force=True)
    after = numbers(indexed)
    assert (result["files"], result["indexed"]) == (61, 60), "the configuration is no document"
    assert {path for path in after if after[path] != before[path]} == set(before) - {"other.json"}
    assert indexed.contents() == contents
    assert indexed.found("title", b"st7") == {"/d/0007.json"}, "flushed"


def test_what_the_view_has_not_come_to_is_indexed_ahead_of_it(indexed: Indexed, run: Runner) -> None:
    indexed.put({f"/d/{number:04}.json": {"title": f"t{number}"} for number in range(700)})
    indexed.finish()
    indexed.configure("/d", FIELD)  # more files than are taken in at once: a job is to do it
    result = run(path="/d")
    assert result["indexed"] >= 700
    after = numbers(indexed)
    indexed.finish()
    assert numbers(indexed) == after, "the job of the view finds nothing left to do"
    assert indexed.contents()["/d/0699.json"]["title"] == ["t699"]


def test_a_checkpoint_comes_after_a_flush_only(
    indexed: Indexed, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(indexed, 160)
    order: list[Any] = []
    flush = type(reindex_of(indexed.database)).flush

    def noted(self: Any, should_stop: Any) -> None:
        flush(self, should_stop)
        state = numbers(indexed)
        unflushed = indexed.read(lambda snapshot: {one.id for one in snapshot.tail()})
        order.append(max((path for path in state if state[path] not in unflushed), default=None))

    monkeypatch.setattr("svc_query.indexing.renewing.Reindex.flush", noted)
    context = run.context(path="/d", force=True, index_flush_writes=1)
    save = context.save_checkpoint

    def saved(value: Any) -> None:
        order.append(("saved", value["after"]))
        save(value)

    context.save_checkpoint = saved  # type: ignore[method-assign]
    run(context)
    # Each batch has more mutations than one: flushed, then named as done.
    assert [one[1] for one in order if isinstance(one, tuple)] == [
        "/d/0048.json", "/d/0098.json", "/d/0148.json", "/d/0159.json",
    ]  # fmt: skip
    assert all(isinstance(order[at - 1], str) for at, one in enumerate(order) if isinstance(one, tuple))
    assert isinstance(order[-1], str), "a final flush"


@pytest.mark.parametrize(
    ("limits", "some"),
    [
        ({}, False),
        ({"index_flush_ms": 1}, True),
        ({"index_flush_writes": 1 << 40}, False),
        ({"index_flush_writes": 500}, True),
    ],
)
def test_the_index_is_flushed_by_mutations_and_by_time(
    indexed: Indexed, run: Runner, limits: dict[str, int], some: bool
) -> None:
    fill(indexed, 160)
    context = run.context(path="/d", force=True, **limits)
    run(context)
    assert bool(context.saved) is some


def test_a_run_that_was_interrupted_goes_on_behind_its_checkpoint(indexed: Indexed, run: Runner) -> None:
    fill(indexed, 220)
    before = numbers(indexed)
    first = run.until(3, TaskStopped(), path="/d", force=True)
    assert first.saved[-1]["after"] == "/d/0148.json"
    second = run.context(first.saved[-1], path="/d", force=True)
    result = run(second)
    assert second.begun == [(221, 150)]
    assert second.batches == [50, 21]
    assert (result["files"], result["indexed"]) == (221, 220)
    after = numbers(indexed)
    assert all(after[path] != before[path] for path in before), "nothing was skipped"


def test_what_was_done_since_the_last_checkpoint_is_not_done_twice(indexed: Indexed, run: Runner) -> None:
    fill(indexed, 220)
    cancelled = run.until(4, TaskCancelled(), path="/d", force=True, index_flush_writes=200)
    assert cancelled.saved, "some"
    once = numbers(indexed)
    done = cancelled.saved[0]
    result = run(run.context(done, path="/d", force=True))
    assert result["files"] == 221
    twice = numbers(indexed)
    first_batches = sorted(once)[:199]
    assert all(once[path] == twice[path] for path in first_batches)


def test_ten_failures_in_a_row_trip_the_breaker(indexed: Indexed, run: Runner) -> None:
    indexed.configure("/d", FIELD)
    indexed.put({f"/d/{number:02}.json": b"no json" for number in range(10)})
    indexed.finish()
    with pytest.raises(SvcError) as tripped:
        run(path="/d")
    assert str(tripped.value) == BREAKER


def test_nine_failures_and_one_good_file_do_not(indexed: Indexed, run: Runner) -> None:
    indexed.configure("/d", FIELD)
    files: dict[str, Any] = {f"/d/{number:02}.json": b"no json" for number in range(19)}
    files["/d/09.json"] = {"title": "good"}
    indexed.put(files)
    indexed.finish()
    result = run(path="/d")
    assert result["failed"] == 18
    assert set(result["failures"]) == set(files) - {"/d/09.json"}


def test_failures_are_counted_over_batches_and_over_runs(indexed: Indexed, run: Runner) -> None:
    indexed.configure("/d", FIELD)
    files: dict[str, Any] = {f"/d/{number:02}.json": {"title": "x"} for number in range(60)}
    files |= {f"/d/{number:02}.json": b"no json" for number in range(44, 54)}
    indexed.put(files)
    indexed.finish()
    stopped = run.until(1, TaskStopped(), path="/d")
    assert stopped.saved[-1]["consecutive"] == 5, "one place is that of the configuration"
    with pytest.raises(SvcError) as tripped:
        run(run.context(stopped.saved[-1], path="/d"))
    assert str(tripped.value) == BREAKER


def test_a_file_that_failed_is_tried_again_without_force(
    indexed: Indexed, run: Runner, source: Source
) -> None:
    indexed.configure("/d", {**FIELD, "source": ["lines", 0]}, parser="lines")
    indexed.put({"/d/a": b"bad at first", "/d/b": b"good"}, content_type="text/x-lines")
    indexed.finish()
    assert run(path="/d")["failed"] == 1
    before = numbers(indexed)
    assert run(path="/d/b")["indexed"] == 0
    assert numbers(indexed) == before


def test_files_that_child_processes_parse_are_waited_for(indexed: Indexed, run: Runner) -> None:
    indexed.put({f"/d/{number}": f"line {number}".encode() for number in range(60)}, "text/x-lines")
    indexed.configure("/d", {**FIELD, "source": ["lines", 0]}, parser="lines")
    result = run(path="/d", force=True)
    assert (result["files"], result["failed"]) == (61, 0)
    assert indexed.contents()["/d/59"]["title"] == ["line 59"]
    assert indexed.read(lambda snapshot: snapshot.waiting(("d",))) == 0


def test_metadata_only_reads_no_file(indexed: Indexed, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(indexed, 60)
    before, contents = numbers(indexed), indexed.contents()

    def read(*arguments: Any) -> Any:
        raise AssertionError("a file is read")

    monkeypatch.setattr("svc_query.indexing.reconciling.parse_here", read)
    result = run(path="/d", metadata_only=True, force=True)
    monkeypatch.undo()
    assert (result["indexed"], result["failed"]) == (60, 0)
    after = numbers(indexed)
    assert all(after[path] != before[path] for path in before)
    assert indexed.contents() == contents, "what was found in the files stays"


def test_metadata_only_leaves_what_must_be_read_to_the_view(
    indexed: Indexed, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed.put({f"/d/{number:04}.json": {"title": f"t{number}"} for number in range(700)})
    indexed.finish()
    indexed.configure("/d", FIELD)
    result = run(path="/d", metadata_only=True)
    assert result["failed"] == 0
    indexed.finish()
    assert indexed.contents()["/d/0699.json"]["title"] == ["t699"]


def test_queries_say_that_they_are_reindexed_meanwhile_and_not_afterwards(
    indexed: Indexed, run: Runner
) -> None:
    fill(indexed, 120)
    seen: list[Any] = []
    context = run.context(path="/d", force=True)

    def look() -> None:
        places = ((), ("d",), ("d", "0001.json"), ("other",))
        seen.extend(indexed.read(lambda snapshot: [snapshot.progress(place) for place in places]))

    context.on_batch = look
    run(context)
    first = seen[:4]
    assert [one is not None for one in first] == [True, True, True, False]
    assert first[0].total == 121
    assert first[0].since_ms > 0
    assert indexed.read(lambda snapshot: snapshot.progress(())) is None
    rows = indexed.reader.read(lambda storage: list(storage.scan(index_keys.REINDEX)))
    assert rows == []


def test_a_reindex_whose_process_was_killed_is_not_shown_for_long(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = reindex_of(indexed.database)
    indexed.put({"/a.json": {}})
    index.show("killed", (), 1, 2, 1_000)
    assert indexed.read(lambda snapshot: snapshot.progress(())) is not None
    monkeypatch.setattr("svc_query.indexing.counting._SILENT_MS", -1)
    assert indexed.read(lambda snapshot: snapshot.progress(())) is None


def test_force_rewrites_records_of_older_versions_and_keeps_everything_else(
    indexed: Indexed, run: Runner
) -> None:
    large = os.urandom(150_000)
    with indexed.database.transaction() as transaction:
        for name in ("a", "b"):
            transaction.put(("d", name), large + name.encode(), created_ms=1, updated_ms=2)
        transaction.put((".config", "large"), large)
        transaction.put_system(("some", "state"), b"state")
    make_record_old(indexed.database, ("d", "a"), ("d", "b"), (".config", "large"), metadata={"k": 1})
    make_record_old(indexed.database, ("some", "state"), system=True)
    old = {one.path: one.entry for one in files_with_records(indexed.database)}
    assert run(path="/d")["records_rewritten"] == 0, "only when it is forced"
    assert run(path="/d", force=True)["records_rewritten"] == 2
    left = [one.path for one in files_with_records(indexed.database) if not one.is_current]
    assert left == [(".config", "large")], "only below the path"
    assert run(force=True)["records_rewritten"] == 2, "the config path and the system tree"
    for system in (False, True):
        assert all(one.is_current for one in files_with_records(indexed.database, system=system))
    for path, before in old.items():
        after = indexed.database.at().get(path)
        assert after is not None
        assert (after.hash, after.created_ms, after.updated_ms) == (
            before.hash, before.created_ms, before.updated_ms,
        )  # fmt: skip
        record = indexed.database.objects.read_record(after.record)  # type: ignore[arg-type]
        assert (record.content_hash, record.metadata) == (before.hash, {"k": 1})
        assert indexed.contents()["/" + "/".join(path)]["@hash"] == before.hash.hex()
    documents = indexed.read(contents_of)
    assert not any("state" in path for path in documents), "the system is not indexed"


def test_a_path_where_nothing_stands_is_an_error(run: Runner) -> None:
    with pytest.raises(NotFound):
        run(path="/nowhere")


def test_files_that_come_and_go_meanwhile_do_no_harm(indexed: Indexed, run: Runner) -> None:
    fill(indexed, 120)
    context = run.context(path="/d", force=True)

    def change() -> None:
        count = len(context.batches)
        ahead, behind = f"/d/{119 - count:04}.json", f"/d/{count:04}.json"
        indexed.put({ahead: None, behind: None, f"/d/9{count}.json": {"title": f"n{count}"}})

    context.on_batch = change
    run(context)
    contents = indexed.contents()
    assert {"/d/91.json", "/d/92.json"} <= set(contents)
    indexed.reader.rebuild()
    indexed.finish()
    assert indexed.contents() == contents
