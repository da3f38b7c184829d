"""Queries of a real server with two workers and a background process, while others write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from svc_testing import Server, start_server

PLUGINS = ("files", "query", "index.exact", "index.trigram", "index.fulltext", "parsers")
INDEXES = {
    "glob": "**/*.json",
    "indexes": [{"name": "n", "type": "exact"}, {"name": "text", "type": "fulltext"}],
}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("server") / "served.svcdb"
    with start_server(path, "--workers", "2", "--background", "true", plugins=PLUGINS) as running:
        stored = put(running, "/d/.svc-config/indexes.json", INDEXES)
        assert stored.status == 201, stored
        yield running


def put(server: Server, path: str, value: Any) -> Any:
    return server.request("PUT", f"/files{path}", body=msgspec.json.encode(value), headers=JSON)


def query(server: Server, **body: Any) -> Any:
    answer = server.request("POST", "/query", body=msgspec.json.encode({"path": "/d", **body}), headers=JSON)
    assert answer.status == 200, answer
    return answer.json()


def test_each_client_sees_its_own_writes_at_once_on_any_worker(server: Server) -> None:
    wrong: list[Any] = []

    def work(client: int) -> None:
        for round_ in range(6):
            number = client * 100 + round_
            put(server, f"/d/c{client}.json", {"n": number, "text": f"word{number} common"})
            found = query(server, where={"field": "n", "op": "eq", "value": number})["results"]
            words = query(server, where={"field": "text", "op": "search", "value": f"word{number}"})[
                "results"
            ]
            if [len(found), len(words)] != [1, 1] or found[0]["path"] != f"/d/c{client}.json":
                wrong.append((client, round_, found, words))

    threads = [threading.Thread(target=work, args=(client,)) for client in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    answer = query(server, where=[], order_by=[{"field": "n"}], path="/d", limit=100)
    assert [row["path"] for row in answer["results"]][:6] == [f"/d/c{client}.json" for client in range(6)]


def test_a_bad_configuration_is_refused_and_the_old_one_stays(server: Server) -> None:
    refused = put(server, "/d/.svc-config/indexes.json", {"indexes": [{"name": "n", "type": "none"}]})
    assert refused.status == 400
    assert "'none'" in refused.json()["error"]
    query(server, where={"field": "n", "op": "gt", "value": 0})


def test_health_and_status_know_the_index(server: Server) -> None:
    assert server.get("/system/health").json()["status"] == "healthy"
    status = server.get("/query/status?path=/d").json()
    assert {"field": "n", "type": "exact"}.items() <= {
        key: value for index in status["indexes"] if index["field"] == "n" for key, value in index.items()
    }.items()
