"""What is answered when a query would have to wait, and what ends when nobody waits for it any more."""

from __future__ import annotations

import io
import json
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from svc_testing import Server, start_server

JSON = {"Content-Type": "application/json"}


def configure(http: Any, **settings: float) -> None:
    answer = http("PUT", "/system/plugins/query/configuration", json=settings)
    assert answer.status_code == 200, answer.text


def set_waiting(http: Any, seconds: float) -> None:
    configure(http, wait_seconds=seconds)


class Slow(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        time.sleep(0.6)
        return super().read(size)


def test_the_time_of_a_query_begins_when_its_body_is_there(books: Any) -> None:
    books.finish()
    configure(books, query_seconds=0.5)
    body = json.dumps({"path": "/books", "where": {"field": "year", "op": "gt", "value": 0}}).encode()
    answer = books("POST", "/query", body=body, headers=JSON, extras={"wsgi.input": Slow(body)})
    assert answer.status_code == 200, answer.text


def test_an_index_that_is_behind_is_named(http: Any) -> None:
    http.query([])
    set_waiting(http, 0.01)
    transaction = http.database.transaction()
    for number in range(15_000):
        transaction.put((f"{number}.bin",), b"")
    transaction.commit()
    error = http.refused([], status=503)
    assert error["view"] == "query.index"
    assert error["commits_behind"] >= 1
    assert error["retry_after"] == 1
    assert "behind" in error["error"]
    http.query([], consistency="eventual")
    set_waiting(http, 60)
    assert http.query([], limit=1, include_total=True)["total_count"] == 15_000


def test_files_that_wait_for_their_parsers_are_counted(http: Any) -> None:
    fields = [{"name": "rows", "type": "exact", "source": ["rows", "", "a"]}]
    http.write({"/d/.svc-config/indexes.json": {"glob": "**/*", "indexes": fields}})
    http.query([])
    http.write({f"/d/{number}.csv": "a,b\n1,2\n" for number in range(3)}, content_type="text/csv")
    http.paths([], "/d")  # The index has followed.
    # Too little for a query to begin to read contents by itself, as it does where nobody else does.
    set_waiting(http, 0.2)
    where = {"field": "rows", "op": "exists"}
    error = http.refused(where, "/d", status=503)
    assert (error["view"], error["files_waiting"]) == ("query.index", 3)
    assert len(http.paths([], "/d")) == 3, "who asks for no content waits for none"
    assert http.paths(where, "/d", consistency="eventual") == []


def log_lines(server: Server) -> list[str]:
    return [line for line in server.errors.splitlines() if "/query" in line]


def test_work_ends_when_its_client_leaves(tmp_path: Path) -> None:
    plugins = ("files", "query", "index.exact", "index.trigram", "parsers")
    with start_server(tmp_path / "left.svcdb", "--access-log", "true", plugins=plugins) as server:
        field = {"name": "t", "type": ["exact", "trigram"], "source": ["t", ""]}
        files: dict[str, Any] = {".svc-config/indexes.json": {"glob": "**/*", "indexes": [field]}}
        # Each needle is longer than a value, and all of its trigrams are somewhere in each file: every value
        # has to be looked at for every needle.
        whole = " ".join(f"word{number * 7919 % 1009}" for number in range(800))
        texts = [whole[start : start + 150] for start in range(0, 6_000, 100)]
        files.update((f"{number}.json", {"t": texts}) for number in range(200))
        for path, value in files.items():
            stored = server.request("PUT", f"/files/{path}", body=msgspec.json.encode(value), headers=JSON)
            assert stored.status in (200, 201), stored
        needles = [whole[start : start + 160] for start in range(0, 5_000, 5)]
        where = {"or": [{"field": "t", "op": "contains", "value": needle} for needle in needles]}
        body = msgspec.json.encode({"path": "/", "where": where})
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as client:
            head = ["POST /query HTTP/1.1", "Host: x", "Content-Type: application/json"]
            head += [f"Content-Length: {len(body)}", "", ""]
            client.sendall("\r\n".join(head).encode() + body)
            time.sleep(1)
        for _ in range(200):
            if log_lines(server):
                break
            time.sleep(0.1)
        (line,) = log_lines(server)
        assert "499" in line
        assert server.get("/files/0.json").status == 200
