"""POST /files/batch: all operations in one commit, or none."""

from __future__ import annotations

import base64
import os
from typing import Any

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files


def test_all_kinds_of_operations_in_one_commit(http: Client, area: str) -> None:
    http.store(f"{area}/old", b"old")
    http.store(f"{area}/gone", b"gone")
    http.store(f"{area}/source", b"copied")
    chunk = os.urandom(5000)
    name = blake3(chunk).hexdigest()
    assert http.request("PUT", f"/blobs/chunks/{name}", chunk).status == 201
    operations = [
        {"op": "put", "path": f"{area}/text", "content": "häß", "content_type": "text/x-mine"},
        {"op": "put", "path": f"{area}/binary", "content_base64": base64.b64encode(b"\x00\xff").decode()},
        {"op": "put", "path": f"{area}/large", "chunk_hashes": [name, name]},
        {"op": "delete", "path": f"{area}/gone"},
        {"op": "move", "from": f"{area}/old", "to": f"{area}/new"},
        {"op": "copy", "from": f"{area}/source", "to": f"{area}/copy"},
    ]
    response = http.post("/files/batch", {"operations": operations})
    assert response.status == 200, response.body
    version = response.json()["version"]
    assert http.names(area) == ["binary", "copy", "large", "new", "source", "text"]
    assert http.names(area, version=version) == http.names(area)
    assert http.read(f"{area}/text") == "häß".encode()
    assert http.head(files(f"{area}/text"))["Content-Type"] == "text/x-mine"
    assert http.read(f"{area}/binary") == b"\x00\xff"
    assert http.read(f"{area}/large") == chunk * 2
    assert http.read(f"{area}/new") == b"old"
    assert http.read(f"{area}/copy") == b"copied"


def test_later_operations_see_earlier_ones(http: Client, area: str) -> None:
    operations = [
        {"op": "put", "path": f"{area}/a", "content": "1"},
        {"op": "move", "from": f"{area}/a", "to": f"{area}/b"},
        {"op": "copy", "from": f"{area}/b", "to": f"{area}/c"},
        {"op": "delete", "path": f"{area}/b"},
        {"op": "put", "path": f"{area}/a", "content": "2"},
    ]
    assert http.post("/files/batch", {"operations": operations}).status == 200
    assert http.names(area) == ["a", "c"]
    assert http.read(f"{area}/a") == b"2"
    assert http.read(f"{area}/c") == b"1"


@pytest.mark.parametrize(
    ("failing", "statuses"),
    [
        ({"op": "delete", "path": "{area}/missing"}, (409,)),
        ({"op": "move", "from": "{area}/missing", "to": "{area}/x"}, (409,)),
        ({"op": "copy", "from": "{area}/missing", "to": "{area}/x"}, (409,)),
        ({"op": "put", "path": "{area}/first/below", "content": ""}, (409,)),
        ({"op": "move", "from": "{area}/first", "to": "{area}/kept"}, (409,)),
        ({"op": "delete", "path": "{area}/full"}, (409,)),
        ({"op": "put", "path": "{area}/x", "chunk_hashes": ["00" * 32]}, (400, 409)),
    ],
)
def test_one_failure_undoes_all_and_is_named(
    http: Client, area: str, failing: dict[str, Any], statuses: tuple[int, ...]
) -> None:
    http.store(f"{area}/kept", b"kept")
    http.store(f"{area}/full/x", b"x")
    before = http.head(files(area))["X-Svc-Version"]
    failing = {
        name: text.format(area=area) if isinstance(text, str) else text for name, text in failing.items()
    }
    operations = [
        {"op": "put", "path": f"{area}/first", "content": "1"},
        {"op": "delete", "path": f"{area}/kept"}
        if "kept" not in str(failing)
        else {"op": "put", "path": f"{area}/second", "content": "2"},
        failing,
        {"op": "put", "path": f"{area}/last", "content": "3"},
    ]
    response = http.post("/files/batch", {"operations": operations})
    assert response.status in statuses, response.body
    value = assert_error(response, response.status)
    assert 2 in value.values() or "2" in value["error"], value
    assert http.names(area) == ["full", "kept"]
    assert http.read(f"{area}/kept") == b"kept"
    assert http.head(files(area))["X-Svc-Version"] == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        {"operations": None},
        {"operations": {}},
        {"operations": [1]},
        {"operations": [{}]},
        {"operations": [{"op": "explode", "path": "/x"}]},
        {"operations": [{"op": "put"}]},
        {"operations": [{"op": "put", "path": 5, "content": ""}]},
        {"operations": [{"op": "put", "path": "/x", "content": 5}]},
        {"operations": [{"op": "put", "path": "/x", "content_base64": "***"}]},
        {"operations": [{"op": "put", "path": "/x", "content": "a", "content_base64": "YQ=="}]},
        {"operations": [{"op": "put", "path": "/x/../y", "content": ""}]},
        {"operations": [{"op": "move", "from": "/x"}]},
        {"operations": [{"op": "put", "path": "/x", "chunk_hashes": "zz"}]},
    ],
)
def test_malformed_batches_are_400(http: Client, body: Any) -> None:
    assert_error(http.post("/files/batch", body), 400)


def test_an_empty_batch_changes_nothing(http: Client) -> None:
    response = http.post("/files/batch", {"operations": []})
    assert response.status in (200, 400)


def test_more_than_ten_thousand_operations_are_too_many(http: Client, area: str) -> None:
    operations = [{"op": "put", "path": f"{area}/{number}", "content": ""} for number in range(10_001)]
    response = http.post("/files/batch", {"operations": operations})
    value = assert_error(response, response.status)
    assert response.status in (400, 413)
    assert value["limit"] == 10_000
    assert_error(http.get(files(area)), 404)


def test_ten_thousand_operations_are_one_commit(http: Client, area: str) -> None:
    operations = [{"op": "put", "path": f"{area}/{n % 50}/{n}", "content": str(n)} for n in range(10_000)]
    assert http.post("/files/batch", {"operations": operations}).status == 200
    assert sum(item["file_count"] for item in http.listing(area, limit=1000)["items"]) == 10_000
    assert http.read(f"{area}/49/9999") == b"9999"
