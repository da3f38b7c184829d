"""``/files/batch``: everything in one commit, or nothing."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from blake3 import blake3

from svc.plugin import Limits

from .conftest import Http  # noqa: TID252


def test_all_operations_are_one_commit(http: Http) -> None:
    http.fill("/old", "/move-me", "/copy-me")
    before = http.database.head().sequence
    answer = http.post(
        "/files/batch",
        {
            "message": "many things",
            "operations": [
                {"op": "put", "path": "/a.txt", "content": "grüße"},
                {"op": "put", "path": "/b", "content_base64": base64.b64encode(b"\x00\xff").decode()},
                {"op": "delete", "path": "/old"},
                {"op": "move", "from": "/move-me", "to": "/moved"},
                {"op": "copy", "from": "/copy-me", "to": "/copied"},
                {"op": "mkdir", "path": "/empty"},
                {"op": "link", "path": "/link", "target": "/a.txt"},
                {"op": "copy", "from": "/a.txt", "to": "/copy-of-new"},
            ],
        },
    )
    assert answer.status_code == 200
    assert http.database.head().sequence == before + 1
    assert answer.json["version"] == http.get("/files").headers["x-svc-version"]
    results = answer.json["results"]
    assert " ".join(result["op"] for result in results) == "put put delete move copy mkdir link copy"
    assert (results[0]["created"], results[0]["content_hash"]) == (True, blake3("grüße".encode()).hexdigest())
    assert results[2] == {"op": "delete", "path": "/old", "deleted": True, "entry_type": 2}
    assert results[3]["from"] == "/move-me"
    assert http.get("/files/link").content == "grüße".encode()
    assert http.items("/files") == [
        "/a.txt", "/b", "/copied", "/copy-me", "/copy-of-new", "/empty", "/link", "/moved",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"op": "delete", "path": "/none"}, "NOT_FOUND"),
        ({"op": "delete", "path": "/d"}, None),
        ({"op": "move", "from": "/none", "to": "/x"}, "NOT_FOUND"),
        ({"op": "move", "from": "/d/e", "to": "/d/f"}, None),
        ({"op": "copy", "from": "/d", "to": "/d/g"}, None),
        ({"op": "put", "path": "/d", "content": ""}, None),
        ({"op": "put", "path": "/d/e/below", "content": ""}, None),
        ({"op": "put", "path": "/d/e", "content": "", "if_none_match": "*"}, "PRECONDITION_FAILED"),
        ({"op": "put", "path": "/d/e", "content": "", "if_match": '"00"'}, "PRECONDITION_FAILED"),
        ({"op": "link", "path": "/d/e", "target": "/x"}, None),
        ({"op": "mkdir", "path": "/d", "exist_ok": False}, None),
    ],
)
def test_one_that_fails_undoes_all_and_is_named(
    http: Http, operation: dict[str, Any], reason: str | None
) -> None:
    http.fill("/d/e", "/d/f")
    first = {"op": "put", "path": "/new", "content": "x"}
    answer = http.post("/files/batch", {"operations": [first, operation]})
    assert answer.status_code == 409
    assert answer.json["operation"] == 1
    assert answer.json["code"] in ("CONFLICT", "ALREADY_EXISTS")
    assert answer.json.get("reason") == reason
    assert http.get("/files/new").status_code == 404
    assert http.items("/files", params={"depth": "-1"}) == ["/d/e", "/d/f"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "put", "path": "/a"},
        {"op": "put", "path": "/a", "content": "x", "content_base64": "eA=="},
        {"op": "put", "path": "/a", "content_base64": "?"},
        {"op": "put", "path": "/a", "content_base64": "é"},
        {"op": "put", "path": "/a", "content": "\ud800"},
        {"op": "put", "path": "/a", "content": "x", "size": 2},
        {"op": "put", "path": "/a", "content": "x", "content_hash": "00"},
        {"op": "put", "path": "/a", "content": "x", "content_hash": "00" * 32},
        {"op": "put", "path": "/a", "content": "x", "content_type": "no"},
        {"op": "put", "path": "/a", "content": "x", "updated_at": -1},
        {"op": "put", "path": "/a/../b", "content": "x"},
        {"op": "put", "path": "/", "chunk_hashes": ["00"]},
        {"op": "put", "path": "/a", "chunk_hashes": ["00" * 32]},
        {"op": "link", "path": "/a", "target": "b"},
        {"op": "delete", "path": "/a\u0000"},
        {"op": "move", "from": "/a"},
        {"op": "unknown", "path": "/a"},
        {"path": "/a"},
        5,
        None,
    ],
)
def test_an_operation_that_makes_no_sense_is_400(http: Http, operation: Any) -> None:
    first = {"op": "put", "path": "/new", "content": "x"}
    answer = http.post("/files/batch", {"operations": [first, operation]})
    assert answer.status_code == 400
    assert answer.json.get("operation", 1) == 1
    assert http.get("/files/new").status_code == 404


@pytest.mark.parametrize("server_limits", [Limits(batch_operations=2)])
def test_the_number_of_operations_is_limited(http: Http) -> None:
    operations = [{"op": "mkdir", "path": f"/{number}"} for number in range(3)]
    answer = http.post("/files/batch", {"operations": operations})
    assert (answer.status_code, answer.json["limit"]) == (413, 2)
    assert http.post("/files/batch", {"operations": []}).status_code == 400
    assert http.post("/files/batch", {"operations": operations[:2]}).status_code == 200


def test_a_batch_can_go_to_a_fork(http: Http) -> None:
    http.fill("/a")
    with http.database.transaction() as transaction:
        transaction.set_ref("forks/f", http.database.head().root, expected=b"")
    operations = {"operations": [{"op": "delete", "path": "/a"}]}
    assert http.post("/files/batch", operations, params={"fork": "f"}).status_code == 200
    assert http.get("/files/a").status_code == 200
    assert http.get("/files/a", params={"fork": "f"}).status_code == 404


def test_the_same_path_twice_is_fine(http: Http) -> None:
    operations = [{"op": "put", "path": "/a", "content": text} for text in ("1", "2")]
    answer = http.post("/files/batch", {"operations": operations}).json
    assert [result["created"] for result in answer["results"]] == [True, False]
    assert http.get("/files/a").content == b"2"


@pytest.mark.parametrize("source", ["path", "from"])
@pytest.mark.parametrize("target", ["to", "destination"])
@pytest.mark.parametrize("op", ["move", "copy"])
def test_source_and_target_go_by_either_of_their_names(http: Http, op: str, source: str, target: str) -> None:
    http.fill("/a")
    answer = http.post("/files/batch", {"operations": [{"op": op, source: "/a", target: "/b"}]})
    assert answer.status_code == 200
    assert http.get("/files/b").status_code == 200


@pytest.mark.parametrize(
    "operation",
    [
        {"to": "/b"},
        {"path": "/a"},
        {"path": "/a", "from": "/a", "to": "/b"},
        {"path": "/a", "to": "/b", "destination": "/b"},
    ],
)
def test_source_and_target_are_named_once(http: Http, operation: dict[str, str]) -> None:
    http.fill("/a")
    assert http.post("/files/batch", {"operations": [{"op": "move", **operation}]}).status_code == 400
