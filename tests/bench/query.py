"""Queries beside SQLite on the same documents: in process, over HTTP, and while documents are written."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import random
import sqlite3
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from load import Load
from measurement import Bench
from query_documents import configure, document, documents, fill, fill_sqlite, path_of, sqlite_database, words
from report import interleave, seconds_of
from servers import ENABLED, Server, sqlite_queries_app, svc
from svc_query.asking import Asker
from svc_query.indexing import finish_work
from svc_query.indexing.view import view_of
from svc_query.models import QueryBody

from svc.database import Database
from svc.plugins import initialize, load_plugins, parse_allowed
from svc_cli import open_database

_SCRIPT = Path(__file__).parent / "served" / "queries.lua"
_SECONDS = 3
_ASKED = 200
_WRITES_A_SECOND = 500
_AIMS = {"exact": 0.5, "range": 0.5, "part": 2.0, "words": 5.0}
_TITLES = {
    "exact": "exact query, 20 rows",
    "range": "range of 2 fields, ordered, 20 rows",
    "part": "substring of 6 characters, first 20 rows by path",
    "part_any": "the same, and SQLite gives any 20 rows",
    "words": "full text, two words, best 20",
}

Document = dict[str, Any]


class _Questions:
    """The same questions for both: requests of svc, statements of SQLite."""

    def __init__(self, count: int) -> None:
        self._vocabulary = words()
        self._count = count

    def of(self, kind: str, seed: int) -> tuple[list[Document], list[Document]]:
        """So many of one kind, for svc and for SQLite."""
        rng = random.Random(seed)
        ours, theirs = [], []
        for _ in range(_ASKED):
            request, values = self._one(kind, rng)
            ours.append({"path": "/docs", "limit": 20, "select": ["@path", "year", "price"], **request})
            theirs.append({"statement": kind, "values": values})
        return ours, theirs

    def _one(self, kind: str, rng: random.Random) -> tuple[Document, Sequence[Any]]:
        known = document(rng.randrange(self._count), self._vocabulary)
        if kind == "exact":
            return {"where": _leaf("author", "eq", known["author"])}, [known["author"]]
        if kind == "range":
            where = [_leaf("year", "eq", known["year"]), _leaf("price", "lt", known["price"])]
            order = [{"field": "price"}]
            return {"where": where, "order_by": order}, [known["year"], known["price"]]
        if kind.startswith("part"):
            start = rng.randrange(max(1, len(known["title"]) - 6))
            part = known["title"][start : start + 6]
            return {"where": _leaf("title", "contains", part)}, ['"' + part.replace('"', '""') + '"']
        found = rng.sample(known["text"].split(), 2)
        return {"where": _leaf("text", "search", " ".join(found))}, [" ".join(found)]


def _leaf(field: str, op: str, value: Any) -> Document:
    return {"field": field, "op": op, "value": value}


def in_process(bench: Bench) -> None:
    """Queries without HTTP beside SQLite with an index, FTS5 and FTS5's trigrams; how fast both index."""
    count = bench.documents
    path = bench.directory / "query.svcdb"
    _new_database(path, count)
    before = _bytes_of(path.with_name(path.name + ".d"))
    with open_database(str(path), "query") as database:
        configure(database)
        ours = count / seconds_of(lambda: finish_work(database))
        asker = Asker.of(database, view_of(database).context)
        own_size = _bytes_of(path.with_name(path.name + ".d")) - before
        place = bench.directory / "documents.sqlite"
        connection = sqlite_database(place)
        seconds, data = _fill_in_pieces(connection, count)
        theirs = count / seconds
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        texts = _bytes_of(place)
        work = f"indexing of {count:,} documents"
        bench.report.compare(work, [ours], "1/s", "SQLite, the same indexes", [theirs], 1.0)
        bench.report.compare(
            f"indexes of {count:,} documents", [own_size / 1e6], "MB", "the documents", [data / 1e6]
        )
        bench.report.compare("the same", [own_size / 1e6], "MB", "SQLite, table and indexes", [texts / 1e6])
        _compare_queries(bench, asker, connection, count)
        connection.close()


def _fill_in_pieces(connection: sqlite3.Connection, count: int) -> tuple[float, int]:
    """Fills the table; the seconds that it took, without those of making the documents, and their bytes."""
    seconds, size = 0.0, 0
    found = documents(count)
    while piece := [(number, json.dumps(one).encode()) for number, one in itertools.islice(found, 10_240)]:
        seconds += seconds_of(partial(fill_sqlite, connection, iter(piece)))
        size += sum(len(content) for _, content in piece)
    return seconds, size


def _compare_queries(bench: Bench, asker: Asker, connection: sqlite3.Connection, count: int) -> None:
    from served.sqlite_queries import STATEMENTS

    questions = _Questions(count)
    for kind, title in _TITLES.items():
        seeds = itertools.count(1)

        def of_svc(kind: str = kind, seeds: Iterator[int] = seeds) -> float:
            ours, _ = questions.of(kind, next(seeds))
            return _rate([partial(_ask, asker, one) for one in ours])

        def of_sqlite(kind: str = kind, seeds: Iterator[int] = seeds) -> float:
            _, theirs = questions.of(kind, next(seeds))
            statement = STATEMENTS[kind]
            return _rate(
                [lambda one=one: connection.execute(statement, one["values"]).fetchall() for one in theirs]
            )

        _same_answers(asker, connection, STATEMENTS[kind], questions, kind)
        ours, theirs = interleave(bench.rounds(5), of_svc, of_sqlite)
        work = f"{title}, {count:,} documents"
        bench.report.compare(work, ours, "1/s", "SQLite", theirs, _AIMS.get(kind))


def _same_answers(
    asker: Asker, connection: sqlite3.Connection, statement: str, questions: _Questions, kind: str
) -> None:
    """Looks at the answers of both: the same number, where all were shown."""
    ours, theirs = questions.of(kind, 0)
    for own, other in zip(ours[:20], theirs[:20], strict=True):
        found = _ask(asker, own)["results"]
        rows = connection.execute(statement, other["values"]).fetchall()
        assert len(found) == len(rows), (own, len(found), len(rows))


def _ask(asker: Asker, request: Document) -> Document:
    return asker.query(msgspec.convert(request, QueryBody))


def _rate(calls: Sequence[Callable[[], object]]) -> float:
    """How many calls of the middle one's duration fit into a second."""
    taken = []
    for call in calls:
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return 1 / statistics.median(taken)


def over_http(bench: Bench) -> None:
    """Queries over HTTP with 32 clients: requests a second, p50, p99; beside the same worker on SQLite."""
    count = bench.documents
    path = bench.directory / "query.svcdb"
    _served_database(path, count)
    with sqlite_database(bench.directory / "documents.sqlite") as connection:
        fill_sqlite(connection, ((number, json.dumps(found).encode()) for number, found in documents(count)))
    connection.close()
    with svc(path) as own, sqlite_queries_app(bench.directory) as sqlite:
        caller = _Caller(own)
        caller.put(("docs", ".svc-config", "indexes.json"), _configuration())
        caller.wait_until_indexed(count)
        questions = _Questions(count)
        for kind, title in _TITLES.items():
            files = []
            for name, asked in zip(("svc", "sqlite"), questions.of(kind, 1), strict=True):
                file = bench.directory / f"{kind}-{name}"
                file.write_text("".join(json.dumps(one) + "\n" for one in asked))
                files.append(file)
            loads = [(_post(own, files[0]), _post(sqlite, files[1])) for _ in range(bench.rounds(3))]
            work = f"POST /query, {title}, 32 connections"
            for name, unit in (("rate", "1/s"), ("p50_ms", "ms"), ("p99_ms", "ms")):
                label = work if name == "rate" else f"the same, {name[:3]}"
                ours = [getattr(own_load, name) for own_load, _ in loads]
                theirs = [getattr(other, name) for _, other in loads]
                bench.report.compare(label, ours, unit, "SQLite, same worker class", theirs)
        caller.close()


def between_writes(bench: Bench) -> None:
    """A query right after a write, while 500 others a second go on; memory while everything is indexed."""
    count = bench.documents
    path = bench.directory / "query.svcdb"
    _served_database(path, count)
    with svc(path) as own:
        caller = _Caller(own)
        memory = _Memory(own.pid)
        with memory:
            caller.put(("docs", ".svc-config", "indexes.json"), _configuration())
            caller.wait_until_indexed(count)
        work = f"memory of all processes while {count:,} documents are indexed"
        bench.report.limit(work, [memory.peak / (1 << 20)], "MiB", 500)
        rounds = bench.rounds(3)
        numbers = itertools.count(count)
        quiet = [_after_writes(caller, numbers) for _ in range(rounds)]
        busy = []
        for _ in range(rounds):
            with _Writing(own, numbers):
                busy.append(_after_writes(caller, numbers))
        for name, place in (("p50", 0), ("p99", 1)):
            bench.report.compare(
                f"a query right after a write, {_WRITES_A_SECOND} others a second, {name}",
                [one[place] for one in busy],
                "ms",
                "without the others",
                [one[place] for one in quiet],
            )
        caller.close()


def _after_writes(caller: _Caller, numbers: Iterator[int]) -> tuple[float, float]:
    """Milliseconds of queries that find what was acknowledged just before: the median and the slowest."""
    vocabulary = words()
    taken = []
    for _ in range(100):
        number = next(numbers)
        found = document(number, vocabulary)
        caller.put(path_of(number), json.dumps(found).encode())
        began = time.perf_counter()
        rows = caller.query({"path": "/docs", "where": _leaf("title", "eq", found["title"])})["results"]
        taken.append((time.perf_counter() - began) * 1000)
        assert len(rows) == 1, f"{found['title']} was acknowledged and is not found"
    taken.sort()
    return taken[len(taken) // 2], taken[-2]


class _Caller:
    """One connection to a server of svc."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection(*server.address, timeout=120)
        self._headers = {**server.headers, "Content-Type": "application/json"}

    def put(self, path: tuple[str, ...], content: bytes) -> None:
        self._send("PUT", "/files/" + "/".join(path), content)

    def query(self, request: Document) -> Document:
        found: Document = json.loads(self._send("POST", "/query", json.dumps(request).encode()))
        return found

    def wait_until_indexed(self, count: int) -> None:
        """Until a query finds so many, and says nothing of a reindex; half an hour at most."""
        deadline = time.monotonic() + 1800
        request = {"path": "/docs", "where": _leaf("year", "gt", 0), "include_total": True, "limit": 1}
        while time.monotonic() < deadline:
            with contextlib.suppress(RuntimeError):
                found = self.query(request)
                if "meta" not in found and found["total_count"] == count:
                    return
            time.sleep(0.5)
        raise RuntimeError("The documents were not indexed in time.")

    def close(self) -> None:
        self._connection.close()

    def _send(self, method: str, url: str, body: bytes) -> bytes:
        self._connection.request(method, url, body, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {url}: {answer.status} {content[:500]!r}")
        return content


class _Writing:
    """Puts documents at a rate, until its block ends."""

    def __init__(self, server: Server, numbers: Iterator[int]) -> None:
        self._server = server
        self._numbers = numbers
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write) for _ in range(4)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        vocabulary = words()
        caller = _Caller(self._server)
        pause = len(self._threads) / _WRITES_A_SECOND
        following = time.perf_counter()
        while not self._over.is_set():
            number = 10_000_000 + next(self._numbers)
            caller.put(path_of(number), json.dumps(document(number, vocabulary)).encode())
            following += pause
            self._over.wait(max(0.0, following - time.perf_counter()))
        caller.close()


class _Memory:
    """The most memory of their own that a process and all below it took together while its block lasted."""

    def __init__(self, pid: int) -> None:
        self.peak = 0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            self.peak = max(self.peak, sum(map(_anonymous_bytes, _family(self._pid))))


def _family(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return found


def _anonymous_bytes(pid: int) -> int:
    """Memory of a process without the pages of files that it has mapped, which the system may take back."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return 0


def _post(server: Server, bodies: Path) -> Load:
    headers = [word for item in server.headers.items() for word in ("-H", ": ".join(item))]
    command = ["wrk", "-t1", "-c32", f"-d{_SECONDS}s", "-s", str(_SCRIPT), *headers, server.url("/query")]
    done = subprocess.run(
        [*command, "--", str(bodies)], capture_output=True, text=True, check=True, timeout=_SECONDS + 60
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    if figures.pop("errors"):
        raise RuntimeError(f"POST /query: answers other than 2xx: {done.stdout}")
    return Load(**{name: figures[name] for name in ("rate", "p50_ms", "p99_ms")})


def _new_database(path: Path, count: int) -> None:
    with Database(path) as database:
        initialize(database, load_plugins(parse_allowed(",".join(ENABLED))))
        fill(database, count)


def _served_database(path: Path, count: int) -> None:
    """A database that ``svc`` of this bench may serve: made by it, and filled afterwards."""
    with svc(path):
        pass
    with Database(path) as database:
        fill(database, count)


def _configuration() -> bytes:
    from query_documents import CONFIGURATION

    return json.dumps(CONFIGURATION).encode()


def _bytes_of(path: Path) -> int:
    """What a file or a directory takes on the disk: holes are not counted, files of several names once."""
    found = [os.stat(one) for one in (path.rglob("*") if path.is_dir() else (path,)) if one.is_file()]
    return sum({(one.st_dev, one.st_ino): one.st_blocks * 512 for one in found}.values())
