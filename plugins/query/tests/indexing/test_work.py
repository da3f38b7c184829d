"""The view's own work: files that wait, failures, jobs, kills, other processes, a numbering that ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from svc_query.indexing import applying, index_status, reading, rebuild, table, working
from svc_query.indexing.reading import finish_work
from svc_query.testing.indexed_database import Indexed, Names, Source, contents_of, paths

from svc.database import view_batches
from svc.errors import ServiceUnavailable, SvcError

TITLE = {"name": "title", "type": "exact"}
LINES = {"name": "lines", "type": "exact", "source": ["lines", ""]}


def test_files_wait_for_child_processes_and_queries_for_them(indexed: Indexed) -> None:
    indexed.configure("/", LINES)
    indexed.contents()
    indexed.put({"/a/x.txt": b"one\ntwo", "/b/bad.txt": b"bad"}, "text/x-lines")
    assert indexed.read(lambda snapshot: snapshot.waiting(())) == 2
    assert indexed.read(lambda snapshot: snapshot.waiting(("a",))) == 1
    assert indexed.read(lambda snapshot: snapshot.waiting(("a", "x.txt"))) == 1
    assert "lines" not in indexed.contents()["/a/x.txt"]
    with pytest.raises(ServiceUnavailable) as refused:
        indexed.read(contents_of, waits_for=[(("a",), None)], wait_until=time.monotonic())
    assert refused.value.details["view"] == "query.index"
    assert refused.value.details["files_waiting"] == 1
    seen = [((), lambda path: path[0] == "c")]
    indexed.read(contents_of, waits_for=seen, wait_until=time.monotonic())  # nothing that counts
    found = indexed.read(contents_of, waits_for=[((), None)])
    assert found["/a/x.txt"]["lines"] == ["one", "two"]
    assert "lines" not in found["/b/bad.txt"]
    (failure,) = indexed.read(index_status)["failures"]
    assert failure["path"] == "/b/bad.txt"
    assert "bad" in failure["error"]
    indexed.put({"/b/bad.txt": b"good"}, "text/x-lines")
    assert indexed.read(contents_of, waits_for=[((), None)])["/b/bad.txt"]["lines"] == ["good"]
    assert indexed.read(index_status)["failures"] == []


def test_a_child_process_that_ended_is_no_zombie(indexed: Indexed) -> None:
    indexed.configure("/", LINES)
    indexed.put({"/a.txt": b"one"}, "text/x-lines")
    indexed.reader.catch_up()
    for _ in range(10_000):
        if not indexed.reader.work():
            break
    (pid,) = indexed.view.worker.children
    os.kill(pid, signal.SIGKILL)
    for _ in range(1_000):
        indexed.reader.work()
        if not Path(f"/proc/{pid}").exists():
            break
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()
    assert indexed.view.worker.children == ()


def test_a_file_that_changes_while_it_is_read_is_read_again(indexed: Indexed) -> None:
    indexed.configure("/", LINES)
    indexed.contents()
    indexed.put({"/x.txt": b"old"}, "text/x-lines")
    indexed.reader.catch_up()
    indexed.reader.work(should_stop=lambda: True)
    indexed.put({"/x.txt": b"new", "/y.txt": b"gone"}, "text/x-lines")
    indexed.put({"/y.txt": None})
    indexed.finish()
    found = indexed.contents()
    assert found["/x.txt"]["lines"] == ["new"]
    assert "/y.txt" not in found


def test_a_query_refuses_to_wait_for_commits_longer_than_it_may(indexed: Indexed) -> None:
    indexed.contents()
    indexed.put({"/a.json": {}})
    with pytest.raises(ServiceUnavailable) as refused:
        indexed.read(contents_of, wait_until=time.monotonic() - 1)
    assert refused.value.details["commits_behind"] == 1
    assert refused.value.details["retry_after"] == 1
    assert indexed.read(contents_of, minimum=0, wait_until=0) == {}
    assert "/a.json" in indexed.contents()


def test_a_value_that_an_index_does_not_take_costs_that_value_alone(indexed: Indexed) -> None:
    indexed.configure("/", {"name": "title", "type": ["exact", "names"]})
    indexed.put({f"/{number}.json": {"title": f"t{number}"} for number in range(300)})
    indexed.put({"/a.json": {"title": "raise"}, "/b.json": {"title": "refused"}})
    indexed.finish()
    assert len(indexed.contents()) == 302
    failures = {one["path"]: one["indexes"] for one in indexed.read(index_status)["failures"]}
    assert failures == {
        "/a.json": {"title: exact": "ValueError: it said so"},
        "/b.json": {"title: names": "ValueError: it is refused"},
    }
    assert indexed.found("title", b"st7") == {"/7.json"}


class Failing(Names):
    """Fails at one of its calls."""

    call = ""
    error: Exception = ValueError("it is not today's")

    def open_writer(self, directory: Path, options: Any, state: bytes | None) -> Any:
        writer = super().open_writer(directory, options, state)
        if self.call == "open_writer":
            raise self.error
        if self.call:

            def fail(_: Any) -> bytes:
                raise self.error

            setattr(writer, self.call, fail)
        return writer


@pytest.mark.parametrize("call", ["open_writer", "flush"])
@pytest.mark.parametrize(
    "error", [ValueError("it broke"), OSError("it broke"), PermissionError(13, "it broke")]
)
def test_an_index_type_that_fails_rests_until_a_rebuild(
    indexed: Indexed, source: Source, call: str, error: Exception
) -> None:
    failing = source.types["names"] = Failing()
    source.use()
    indexed.configure("/", {"name": "title", "type": ["exact", "names"]})
    failing.call, failing.error = call, error
    indexed.put({f"/{number}.json": {"title": f"t{number}"} for number in range(300)})
    indexed.finish()

    def problems() -> dict[str, str]:
        rows = [one for one in indexed.read(index_status)["indexes"] if one["field"] == "title"]
        return {one["type"]: one.get("problem", "") for one in rows}

    assert "it broke" in problems()["names"]
    assert problems()["exact"] == ""
    assert indexed.found("title", b"st7") == {"/7.json"}
    failing.call = ""
    indexed.put({f"/{number}.json": {"title": f"u{number}"} for number in range(300)})
    indexed.finish()
    assert "it broke" in problems()["names"], "it rests"
    rebuild(indexed.database, ())
    indexed.finish()
    assert problems() == {"names": "", "exact": ""}
    names = indexed.read(
        lambda snapshot: [one.reader.known for one in snapshot.indexes("title") if one.type.name == "names"]
    )
    assert sorted(names[0].values()) == sorted([f"u{number}"] for number in range(300))


def test_a_full_disk_is_no_fault_of_an_index_type(indexed: Indexed, source: Source) -> None:
    failing = source.types["names"] = Failing()
    source.use()
    indexed.configure("/", {"name": "title", "type": ["exact", "names"]})
    failing.call, failing.error = "flush", OSError(errno.ENOSPC, "full")
    indexed.put({f"/{number}.json": {"title": f"t{number}"} for number in range(300)})
    with pytest.raises((OSError, SvcError), match=r"(?i)full|space"):
        indexed.finish()
    failing.call = ""
    indexed.finish()
    rows = indexed.read(index_status)["indexes"]
    assert not any("problem" in one for one in rows)
    assert indexed.read(lambda snapshot: len(snapshot.tail())) == 0


@pytest.mark.parametrize("large", [3, 2000])
def test_a_tree_that_goes_back_is_followed(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(applying, "MOST_CHANGES", large)
    indexed.configure("/", TITLE)
    indexed.put({f"/a/{number}.json": {"title": f"t{number}"} for number in range(10)})
    before, root = indexed.contents(), indexed.database.head().root
    indexed.put({"/a": None, "/b.json": {"title": "b"}})
    indexed.put({f"/c/{number}.json": {"title": "c"} for number in range(10)})
    indexed.finish()
    assert len(indexed.contents()) == 11
    with indexed.database.transaction() as transaction:
        transaction.set_ref("HEAD", root)
    indexed.finish()
    assert indexed.contents() == before


def test_order_runs_both_ways_and_from_any_point(indexed: Indexed) -> None:
    long = "l" * 250
    names = [
        "/a",
        "/a.b",
        "/a/b",
        "/b/1",
        "/b/2",
        "/b-c",
        "/é",
        f"/{long}/{long}/x",
        f"/{long}/{long}/y",
        f"/{long}/{long}",
    ]
    names += [f"/{'/'.join([long] * 5)}/{end}" for end in "ab"]
    names += [f"/n/{number:03d}" for number in range(300)]
    files = {name + "/f": {} for name in names}
    indexed.put(files)
    expected = sorted(files, key=lambda name: name.strip("/").split("/"))
    assert indexed.read(paths) == expected
    for _ in range(2):
        backward = indexed.read(lambda snapshot: paths(snapshot, reverse=True))
        assert backward == expected[::-1]
        for place in (0, 3, 7, 9, 11, 150, len(expected) - 1):
            edge = tuple(expected[place].strip("/").split("/"))
            assert (
                indexed.read(lambda snapshot, edge=edge: paths(snapshot, after=edge)) == expected[place + 1 :]
            )
            back = indexed.read(lambda snapshot, edge=edge: paths(snapshot, after=edge, reverse=True))
            assert back == expected[:place][::-1]
        for where in (("a",), ("b",), (long,), (long, long), (long,) * 5, ("n",), ("n", "003", "f")):
            text = "/" + "/".join(where)
            below = [name for name in expected if name == text or name.startswith(text + "/")]
            assert indexed.read(lambda snapshot, where=where: paths(snapshot, where)) == below
            assert indexed.read(lambda snapshot, where=where: snapshot.count_below(where)) == len(below)
            back = indexed.read(lambda snapshot, where=where: paths(snapshot, where, reverse=True))
            assert back == below[::-1]
        indexed.finish()
        assert indexed.read(lambda snapshot: len(snapshot.tail())) == 0


def test_a_numbering_that_comes_to_its_end_begins_anew(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed.configure("/", TITLE)
    indexed.put({f"/{number}.json": {"title": f"t{number}"} for number in range(300)})
    indexed.finish()
    before = indexed.contents()
    epoch = indexed.read(lambda snapshot: snapshot.epoch)
    monkeypatch.setattr(working, "NUMBER_LIMIT", 301)
    work = indexed.reader.work
    while indexed.read(lambda snapshot: snapshot.epoch) == epoch:
        work(should_stop=lambda: True)
        indexed.put({"/late.json": {"title": "late"}})
    monkeypatch.setattr(working, "NUMBER_LIMIT", table.NUMBER_LIMIT)
    indexed.finish()
    after = indexed.contents()
    assert after.pop("/late.json")["title"] == ["late"]
    assert after == before
    assert indexed.read(lambda snapshot: max(snapshot.live())) < 700
    assert indexed.found("title", b"st7") == {"/7.json"}


def test_a_rebuild_of_a_directory_reads_its_files_again(indexed: Indexed) -> None:
    indexed.configure("/", TITLE)
    indexed.put({f"/{name}/{number}.json": {"title": name} for number in range(5) for name in "ab"})
    before = indexed.contents()
    numbers = indexed.read(lambda snapshot: (set(snapshot.below(("a",))), set(snapshot.below(("b",)))))
    rebuild(indexed.database, ("a",))
    indexed.finish()
    assert indexed.contents() == before
    after = indexed.read(lambda snapshot: (set(snapshot.below(("a",))), set(snapshot.below(("b",)))))
    assert after[1] == numbers[1]
    assert not after[0] & numbers[0]


def test_many_commits_leave_no_long_tail(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for them, and whatever else is done between: what readers hold in memory is bounded."""
    monkeypatch.setattr(working, "JOB_FLUSH_DOCUMENTS", 100)
    monkeypatch.setattr(view_batches, "MOST_AT_ONCE", 1)
    worker, asking = open_index(), open_index()
    worker.configure("/", TITLE)
    worker.contents()
    for number in range(40):
        worker.put({f"/{number}/{place}.json": {"title": f"t{place}"} for place in range(20)})
    head = worker.database.head().sequence
    longest = 0
    for _ in range(500):
        applied = asking.reader.catch_up()
        longest = max(longest, asking.read(lambda snapshot: len(snapshot.tail()), minimum=0))
        if applied == head:
            break
        worker.reader.work(should_stop=lambda: True)
    assert applied == head
    assert 100 <= longest < 140
    worker.view.release()
    # A process that nobody works for does what must be done itself.
    for number in range(40):
        asking.put({f"/{number}/{place}.json": {"title": f"u{place}"} for place in range(20)})
    assert len(asking.contents()) == 800
    assert asking.found("title", b"su7") == {f"/{number}/7.json" for number in range(40)}


def test_a_query_waits_for_the_work_of_another_process_no_longer_than_it_may(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "JOB_FLUSH_DOCUMENTS", 100)
    monkeypatch.setattr(view_batches, "MOST_AT_ONCE", 1)
    worker, asking = open_index(), open_index()
    worker.contents()
    for number in range(20):
        worker.put({f"/{number}/{place}.json": {"title": "t"} for place in range(20)})
    worker.reader.catch_up()
    assert worker.reader.work(should_stop=lambda: True), "it holds the lock and stands still"
    with pytest.raises(ServiceUnavailable) as refused:
        asking.read(contents_of, wait_until=time.monotonic() + 0.2)
    assert refused.value.details["commits_behind"] > 0
    worker.view.release()
    assert len(asking.contents()) == 400


def within(seconds: float) -> Callable[[], bool]:
    """What stops a wait that would never end."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def test_a_query_that_gave_up_leaves_the_work_to_others(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of a server may have done some of it; nobody may ever ask this process again."""
    monkeypatch.setattr(reading, "_GRACE_SECONDS", 0)
    asking, worker = open_index(), open_index()
    asking.configure("/", LINES)
    asking.contents()
    asking.put({f"/{number}.txt": b"slow" for number in range(600)}, "text/x-lines")
    asking.reader.catch_up()
    with pytest.raises(ServiceUnavailable):
        asking.read(contents_of, waits_for=[((), None)], wait_until=time.monotonic() + 0.4)
    assert finish_work(worker.database, within(60))
    assert worker.contents()["/599.txt"]["lines"] == ["slow"]


def test_a_query_that_waited_for_a_part_leaves_the_rest_to_others(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_GRACE_SECONDS", 0)
    asking, worker = open_index(), open_index()
    asking.configure("/", LINES)
    asking.contents()
    asking.put({f"/{place}/{number}.txt": b"one" for place in "ab" for number in range(300)}, "text/x-lines")
    assert asking.read(contents_of, waits_for=[(("a",), None)])["/a/7.txt"]["lines"] == ["one"]
    assert finish_work(worker.database, within(60))
    assert worker.contents()["/b/299.txt"]["lines"] == ["one"]


def test_two_openings_work_side_by_side(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "FLUSH_DOCUMENTS", 100)
    monkeypatch.setattr(working, "IDLE_FLUSH_DOCUMENTS", 10)
    one, other = open_index(), open_index()
    one.configure("/", TITLE, {"name": "@size", "type": "exact"})
    for number in range(60):
        writer = (one, other)[number % 2]
        writer.put({f"/{number % 7}/{place}.json": {"title": f"t{number}"} for place in range(20)})
        (one, other)[number % 3 % 2].reader.catch_up()
        for worker in (one, other):
            worker.reader.work(should_stop=lambda: True)
        assert one.contents() == other.contents()
    one.view.release()
    other.finish()
    found = other.contents()
    assert len(found) == 140
    assert one.contents() == found
    assert len(one.found("title", b"st59")) == 20


KILLED = """
import sys
from pathlib import Path
from svc_query.indexing import working, applying
from svc_query.testing.indexed_database import Indexed, Source
working.FLUSH_DOCUMENTS = 50
working.IDLE_FLUSH_DOCUMENTS = 10
working.JOB_FLUSH_DOCUMENTS = 50
applying.SMALL_DIRECTORY = 10
indexed = Indexed(Path(sys.argv[1]), Source())
print("ready", flush=True)
for number in range(1000):
    indexed.configure("/", {"name": "title", "type": ["exact", "names"] if number % 2 else "exact"})
    indexed.put({f"/{number % 5}/{place}.json": {"title": f"t{number}"} for place in range(60)})
    indexed.put({f"/{number % 5}": None} if number % 4 == 3 else {"/x.json": {"title": f"t{number}"}})
    indexed.reader.catch_up()
    for _ in range(number % 7):
        indexed.reader.work(should_stop=lambda: True)
"""


def test_a_kill_at_any_moment_costs_nothing(open_index: Callable[..., Indexed], tmp_path: Path) -> None:
    path = tmp_path / "indexed.svcdb"
    for number in range(int(os.environ.get("SVC_INDEX_KILLS", "4"))):
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline()
        time.sleep(0.15 + 0.13 * number)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    indexed = open_index()
    indexed.finish()
    found = indexed.contents()
    assert found
    titles = {value for row in found.values() for value in row.get("title", [])}
    sample = sorted(titles)[:5]
    by_index = {title: indexed.found("title", b"s" + title.encode()) for title in sample}
    for title in sample:
        in_tail = indexed.read(lambda snapshot: {"/" + "/".join(one.path) for one in snapshot.tail()})
        real = {path for path, row in found.items() if row.get("title") == [title]}
        assert (
            real - in_tail
            <= by_index[title]
            <= {p for p, row in found.items() if row.get("title") == [title]}
        )
    indexed.reader.rebuild()
    indexed.finish()
    assert indexed.contents() == found


def test_an_index_whose_files_are_damaged_is_made_anew(
    open_index: Callable[..., Indexed], caplog: pytest.LogCaptureFixture
) -> None:
    indexed = open_index()
    indexed.configure("/", TITLE)
    indexed.put({f"/{number}.json": {"title": f"t{number}"} for number in range(300)})
    indexed.finish()
    before = indexed.contents()
    directory = indexed.reader.read(lambda storage: storage.directory)
    indexed.close()
    for path in directory.glob("index-*/*.seg"):
        content = bytearray(path.read_bytes())
        content[:64] = bytes(64)
        content[-64:] = bytes(64)
        path.write_bytes(content)
    indexed = open_index()
    refused = []
    for _ in range(10):
        try:
            indexed.found("title", b"st7")
            indexed.read(lambda snapshot: snapshot.below(("7.json",)))
        except ServiceUnavailable as error:
            refused.append(error.details["field"])
            continue
        break
    assert set(refused) <= {"title", "@path", "@fields"}
    assert len(refused) in (2, 3)
    indexed.finish()
    assert indexed.found("title", b"st7") == {"/7.json"}
    assert indexed.contents() == before
