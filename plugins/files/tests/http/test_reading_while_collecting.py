"""Whoever reads slowly while the garbage is collected reads what they began; whoever comes later is told."""

from __future__ import annotations

import io
import json
import random
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from falcon.testing import create_environ

from svc.database import CollectionReport
from svc.plugin import collect

from .conftest import Http  # noqa: TID252

BIG = random.Random(1).randbytes(3 << 20)


class Answer:
    """An answer that is taken piece by piece."""

    def __init__(
        self, http: Http, path: str, query: dict[str, str], body: Any = None, **headers: str
    ) -> None:
        environ = create_environ(
            path=path,
            method="GET" if body is None else "POST",
            query_string="&".join(f"{name}={value}" for name, value in query.items()),
            body="" if body is None else json.dumps(body),
            headers={"Content-Type": "application/json", **headers},
        )
        self.status = ""
        self._body = http.app(environ, self._start)
        self._pieces: Iterator[bytes] = iter(self._body)
        self.first = next(self._pieces)

    def _start(self, status: str, headers: Any, error: Any = None) -> Any:
        self.status = status

    def rest(self) -> bytes:
        return self.first + b"".join(self._pieces)

    def close(self) -> None:
        if hasattr(self._body, "close"):
            self._body.close()


def collected(http: Http) -> CollectionReport:
    return collect(http.database, wait_seconds=0.05, upload_hours=0)


def unzipped(content: bytes) -> bytes:
    return zipfile.ZipFile(io.BytesIO(content)).read("big")


def listed(content: bytes) -> Any:
    return len(json.loads(content)["items"])


def fetched(content: bytes) -> Any:
    return [item["path"] for item in json.loads(content)["items"]]


READERS: dict[str, tuple[str, dict[str, str], Any, dict[str, str], Callable[[bytes], Any], Any]] = {
    "file": ("/files/big", {}, None, {}, bytes, BIG),
    "range": ("/files/big", {}, None, {"Range": "bytes=5-3000000"}, bytes, BIG[5:3000001]),
    "archive": ("/files/download", {}, {"paths": ["/big"], "compress": False}, {}, unzipped, BIG),
    "listing": ("/files/", {"depth": "-1", "limit": "1000"}, None, {}, listed, 301),
    "fetch": ("/files/fetch", {}, {"paths": ["/small/1", "/small/2"]}, {}, fetched, ["/small/1", "/small/2"]),
}


@pytest.fixture
def old(http: Http) -> str:
    """A version whose content nothing but itself holds, with a large file and many small ones."""
    with http.database.transaction() as transaction:
        transaction.put(("big",), BIG)
        for number in range(300):
            transaction.put(("small", str(number)), b"%d" % number * 300)
    root = http.database.head().root.hex()
    time.sleep(0.002)  # a moment names the last commit of a millisecond
    with http.database.transaction() as transaction:
        transaction.delete(("big",))
        transaction.delete(("small",), recursive=True)
    return root


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_who_began_before_ends_right(http: Http, old: str, reader: str) -> None:
    path, query, body, headers, understood, expected = READERS[reader]
    with closing(Answer(http, path, {**query, "version": old}, body, **headers)) as answer:
        assert answer.status[:2] == "20"
        report = collected(http)
        assert report.waiting is not None
        assert report.reclaimed_bytes == 0
        later = http.get("/files/big", params={"version": old})
        assert (later.status_code, later.json["collected"]) == (404, True)
        assert understood(answer.rest()) == expected
    assert collected(http).reclaimed_bytes > len(BIG)


def test_who_leaves_early_lets_go(http: Http, old: str) -> None:
    with closing(Answer(http, "/files/big", {"version": old})) as answer:
        assert len(answer.first) < len(BIG)
    assert collected(http).waiting is None


def test_a_reader_of_the_present_state_ends_right_when_it_is_gone(http: Http) -> None:
    http.put("/files/big", BIG)
    with closing(Answer(http, "/files/big", {})) as answer:
        http.delete("/files/big")
        assert collected(http).waiting is not None
        assert answer.rest() == BIG
    assert http.get("/files/big").status_code == 404
    assert collected(http).reclaimed_bytes > len(BIG)


def test_small_answers_hold_nothing(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    http.put("/files/small", b"x" * 1000)
    monkeypatch.setattr(http.database.holds, "take", lambda: pytest.fail("a small answer took a hold"))
    assert http.get("/files/small").content == b"x" * 1000
    assert http.get("/files/").status_code == 200
    assert http.get("/files/small", headers={"Range": "bytes=1-2"}).content == b"xx"


def test_a_short_answer_that_a_collection_overtakes_is_asked_for_again(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the tree and the read of its chunk lies a whole collection."""
    http.put("/files/small", b"y" * 1000)
    objects = type(http.database.objects)
    read = objects.read_chunk

    def overtaken(self: Any, hash: bytes, size: int) -> bytes:
        monkeypatch.setattr(objects, "read_chunk", read)
        http.delete("/files/small")
        assert collected(http).reclaimed_bytes > 0
        return read(self, hash, size)

    monkeypatch.setattr(objects, "read_chunk", overtaken)
    answer = http.get("/files/small")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
    assert http.get("/files/small").status_code == 404


@pytest.mark.parametrize("point", ["version", "at"])
def test_what_is_named_and_gone_answers_404_and_says_so(http: Http, old: str, point: str) -> None:
    named = (
        old if point == "version" else str(http.database.commit_state(http.database.head().sequence - 1)[0])
    )
    while http.database.head().time_ms <= int(named if point == "at" else 0):
        http.put("/files/later", str(http.database.head().sequence))
    collected(http)
    for path in ("/files/big", "/files/small", "/files/"):
        answer = http.get(path, params={point: named})
        assert (answer.status_code, answer.json["code"], answer.json["collected"]) == (404, "NOT_FOUND", True)
        assert "was collected" in answer.json["error"]
