"""Files that wait to be read: nobody keeps those of others from it, with many files or with slow ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from svc_query import health
from svc_query.health import IndexHealth
from svc_query.indexing import keys, waiting
from svc_query.indexing.reading_turns import ReadingTurns, SlowKinds
from svc_query.parsing import ParseResult
from svc_query.testing.indexed_database import Indexed

from svc.plugin import HealthStatus


class Queue:
    """The queue of files, as the view keeps it; some are known by their owners."""

    def __init__(self, *paths: str, owners: Mapping[str, bytes] | None = None) -> None:
        self.owners = {keys.key_of_path(tuple(path.split("/"))): one for path, one in (owners or {}).items()}
        waiting = [keys.key_of_path(tuple(path.split("/"))) for path in paths]
        owned = [keys.OWNED + owner + key for key, owner in self.owners.items()]
        self.keys = sorted([*(keys.WAITING + key for key in waiting), *owned])

    def scan(self, prefix: bytes = b"", after: bytes | None = None) -> Any:
        return ((key, b"") for key in self.keys if key.startswith(prefix) and (after is None or key > after))

    def order(self, turns: ReadingTurns, many: int) -> list[str]:
        found = []
        for _ in range(many):
            key = turns.next(self, (), lambda path: True)  # type: ignore[arg-type]
            assert key is not None
            self.keys.remove(keys.WAITING + key)
            if key in self.owners:
                self.keys.remove(keys.OWNED + self.owners[key] + key)
            found.append("/".join(keys.path_of_key(key)))
        return found


def test_who_wrote_the_files_takes_turns_in_one_directory_too() -> None:
    ann = {f"inbox/{number:03}": b"a" * keys.OWNER_SIZE for number in range(500)}
    bob = {f"inbox/bob-{number}": b"b" * keys.OWNER_SIZE for number in range(3)}
    order = Queue(*ann, *bob, "inbox/x", owners=ann | bob).order(ReadingTurns(), 9)
    assert len([path for path in order if path in bob]) == 3
    assert order[2] not in bob  # one turn of each round is everybody's
    assert Queue(*ann, owners=ann).order(ReadingTurns(), 500)[-1] == "inbox/499"


def test_where_all_that_wait_are_taken_few_rows_are_looked_at() -> None:
    queue = Queue("ann/1", "ann/2", "bob/x/1", "zoe")
    taken = [key[1:] for key in queue.keys]
    scans = 0
    scan = queue.scan

    def counted(*arguments: Any) -> Any:
        nonlocal scans
        scans += 1
        return scan(*arguments)

    queue.scan = counted  # type: ignore[method-assign]
    assert ReadingTurns().next(queue, taken, lambda path: True) is None  # type: ignore[arg-type]
    assert scans == 1


def test_directories_take_turns_at_each_level() -> None:
    many = [f"ann/{number:03}" for number in range(500)]
    queue = Queue(*many, "bob/a", "bob/b", "zoe/x/1", "zoe/x/2", "zoe/y/1", "alone")
    order = queue.order(ReadingTurns(), 12)
    assert [path.split("/")[0] for path in order[:4]] == ["alone", "ann", "bob", "zoe"]
    assert set(order) > {"bob/a", "bob/b", "zoe/x/1", "zoe/x/2", "zoe/y/1", "alone"}
    assert [path for path in order if path.startswith("zoe")] == ["zoe/x/1", "zoe/y/1", "zoe/x/2"]


def test_what_is_taken_or_may_not_be_is_passed_over() -> None:
    queue = Queue("a/1", "a/2", "b/1")
    turns = ReadingTurns()
    taken = {keys.key_of_path(("a", "1"))}
    found = {turns.next(queue, taken, lambda path: path[0] == "a") for _ in range(3)}  # type: ignore[arg-type]
    assert found == {keys.key_of_path(("a", "2"))}
    assert turns.next(queue, (), lambda path: False) is None  # type: ignore[arg-type]


def test_a_kind_is_slow_until_one_of_it_is_read_in_time() -> None:
    slow = SlowKinds()
    slow.note(b"ann", ("a", "1.pdf"), "pdf")
    assert slow.has(b"ann", ("a", "2.pdf"), "pdf")
    assert not slow.has(b"ann", ("b", "2.pdf"), "pdf")
    assert not slow.has(b"bob", ("a", "2.pdf"), "pdf")
    assert not slow.has(b"ann", ("a", "2.txt"), "text")
    slow.forget(b"ann", ("a", "3.pdf"), "pdf")
    assert not slow.has(b"ann", ("a", "2.pdf"), "pdf")


def test_slow_files_of_one_keep_nobody_waiting_and_copies_are_read_once(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, ...]] = []

    def parse(pool: Any, version: Any, path: Any, entry: Any, reading: Any) -> Any:
        read.append(path)
        if path[0] == "ann":
            time.sleep(0.05)
            return {None: ParseResult(None, "It took too long.", late=True)}
        return {None: ParseResult({"lines": ["x"]})}

    monkeypatch.setattr(waiting, "_parse", parse)
    indexed = open_index()
    indexed.configure("/", {"name": "lines", "type": "exact", "source": ["lines", ""]})
    files = {f"/ann/copies/{number}.lines": b"slow" for number in range(60)}
    files |= {f"/ann/others/{number}.lines": b"slow %d" % number for number in range(20)}
    files |= {f"/zoe/{number}.lines": b"quick %d" % number for number in range(20)}
    indexed.put(files, "text/x-lines")
    indexed.finish()
    assert len([path for path in read if path[:2] == ("ann", "copies")]) <= 8
    last = max(place for place, path in enumerate(read) if path[0] == "zoe")
    assert len([path for path in read[:last] if path[0] == "ann"]) <= 20


def test_the_writer_of_a_file_is_known_until_it_was_read(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def parse(pool: Any, version: Any, path: Any, entry: Any, reading: Any) -> Any:
        read.append(path[-1].split("-")[0])
        return {None: ParseResult({"lines": ["x"]})}

    monkeypatch.setattr(waiting, "_parse", parse)
    indexed = open_index()
    indexed.configure("/", {"name": "lines", "type": "exact", "source": ["lines", ""]})
    indexed.finish()
    for user, many in (("ann", 60), ("bob", 3)):
        with indexed.database.transaction(actor=user) as transaction:
            for number in range(many):
                transaction.put(("inbox", f"{user}-{number}.lines"), b"x", content_type="text/x-lines")
    indexed.finish()
    assert read.index("bob") < 4
    assert [at for at, user in enumerate(read) if user == "bob"][-1] < 20
    assert not indexed.read(lambda snapshot: list(snapshot.storage.scan(keys.OWNED)))


def test_health_tells_that_parsers_are_behind(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    check = IndexHealth()
    indexed.put({"/a.json": {"t": 1}})
    indexed.contents()
    assert check.check(indexed.context).status is HealthStatus.HEALTHY
    monkeypatch.setattr(health, "_waiting_files", lambda storage: 7)
    assert check.check(indexed.context).status is HealthStatus.HEALTHY
    monkeypatch.setattr(health, "BEHIND_SECONDS", 0.0)
    report = check.check(indexed.context)
    assert (report.status, report.details["files_waiting"]) == (HealthStatus.DEGRADED, 7)
    monkeypatch.setattr(health, "_waiting_files", lambda storage: 0)
    assert check.check(indexed.context).status is HealthStatus.HEALTHY
