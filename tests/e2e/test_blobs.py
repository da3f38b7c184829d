"""Blobs: chunks are checked, uploaded by their hash, committed as files, and guarded."""

from __future__ import annotations

import os
from typing import Any

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files
from svc_blackbox.raw import RawConnection


def digest(content: bytes) -> str:
    return blake3(content).hexdigest()


def upload(http: Client, content: bytes) -> str:
    name = digest(content)
    response = http.request("PUT", f"/blobs/chunks/{name}", content)
    assert response.status in (200, 201), response.body
    return name


def test_the_configuration_says_how_to_hash(http: Client) -> None:
    value = http.get("/blobs/config").json()
    assert value["hash_algorithm"] == "blake3"
    assert value["chunk_hash_prefix"] == ""
    assert value["chunk_size"] >= 65_536
    assert value["chunking"]


def test_a_chunk_is_created_once_and_then_exists(http: Client) -> None:
    content = os.urandom(1000)
    first = http.request("PUT", f"/blobs/chunks/{digest(content)}", content)
    assert first.status == 201
    assert "created" in first.body.decode()
    second = http.request("PUT", f"/blobs/chunks/{digest(content)}", content)
    assert second.status == 200
    assert "exists" in second.body.decode()


def test_a_chunk_under_a_wrong_hash_is_400_and_not_kept(http: Client) -> None:
    content, other = os.urandom(1000), os.urandom(1000)
    assert_error(http.request("PUT", f"/blobs/chunks/{digest(other)}", content), 400)
    value = http.post("/blobs/check", {"hashes": [digest(content), digest(other)]}).json()
    assert value["have"] == []


@pytest.mark.parametrize("name", ["zz", "0" * 63, "0" * 65, "g" * 64, "0" * 64 + "%00", "%ff"])
def test_what_is_no_hash_is_refused(http: Client, name: str) -> None:
    for response in (http.request("PUT", f"/blobs/chunks/{name}", b"x"), http.get(f"/blobs/{name}")):
        assert response.status in (400, 404)
        assert_error(response, response.status)


def test_check_tells_what_is_needed(http: Client) -> None:
    known, unknown = upload(http, os.urandom(100)), digest(os.urandom(100))
    value = http.post("/blobs/check", {"hashes": [unknown, known]}).json()
    assert (value["have"], value["needed"]) == ([known], [unknown])
    assert http.post("/blobs/check", {"hashes": []}).json() == {"have": [], "needed": []}


@pytest.mark.parametrize("body", [{}, {"hashes": "x"}, {"hashes": [1]}, {"hashes": ["zz"]}, [], None])
def test_check_refuses_what_are_no_hashes(http: Client, body: Any) -> None:
    assert_error(http.post("/blobs/check", body), 400, "INVALID_INPUT")


def test_committed_chunks_become_a_file(http: Client, area: str) -> None:
    parts = [os.urandom(70_000), b"compressible " * 10_000, os.urandom(5)]
    content = b"".join(parts)
    file = {
        "path": f"{area}/made.bin",
        "content_type": "application/x-mine",
        "chunk_hashes": [upload(http, part) for part in parts],
        "size": len(content),
        "content_hash": digest(content),
    }
    response = http.post("/blobs/commit", {"files": [file]})
    assert response.status == 200, response.body
    value = response.json()
    assert value["committed"]
    assert len(value["version"]) == 64
    read = http.get(files(f"{area}/made.bin"))
    assert read.body == content
    assert read["Content-Type"] == "application/x-mine"
    assert read["ETag"] == f'"{digest(content)}"'
    ranged = http.get(files(f"{area}/made.bin"), {"Range": "bytes=69990-70010"})
    assert ranged.body == content[69_990:70_011]


def test_a_chunk_that_repeats_and_no_chunk_at_all(http: Client, area: str) -> None:
    part = os.urandom(1000)
    name = upload(http, part)
    entries = [
        {"path": f"{area}/thrice", "content_type": "a/b", "chunk_hashes": [name] * 3},
        {"path": f"{area}/empty", "content_type": "a/b", "chunk_hashes": []},
    ]
    assert http.post("/blobs/commit", {"files": entries}).status == 200
    assert http.read(f"{area}/thrice") == part * 3
    assert http.read(f"{area}/empty") == b""


def test_missing_chunks_are_named_and_nothing_is_committed(http: Client, area: str) -> None:
    known, missing = upload(http, os.urandom(10)), digest(os.urandom(10))
    entries = [
        {"path": f"{area}/good", "content_type": "a/b", "chunk_hashes": [known]},
        {"path": f"{area}/bad", "content_type": "a/b", "chunk_hashes": [known, missing]},
    ]
    response = http.post("/blobs/commit", {"files": entries})
    assert_error(response, 400)
    assert missing in response.body.decode()
    assert known not in response.body.decode()
    assert_error(http.get(files(f"{area}/good")), 404)


@pytest.mark.parametrize(
    "extra", [{"size": 9}, {"size": -1}, {"content_hash": "00" * 32}, {"content_hash": "z"}]
)
def test_size_and_hash_are_verified(http: Client, area: str, extra: dict[str, Any]) -> None:
    name = upload(http, b"0123456789")
    file = {"path": f"{area}/f", "content_type": "a/b", "chunk_hashes": [name], **extra}
    assert_error(http.post("/blobs/commit", {"files": [file]}), 400)
    assert_error(http.get(files(f"{area}/f")), 404)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"files": 1},
        {"files": [1]},
        {"files": [{}]},
        {"files": [{"path": "/x"}]},
        {"files": [{"path": "/a/../b", "content_type": "a/b", "chunk_hashes": []}]},
        {"files": [{"path": "/x", "content_type": "a/b", "chunk_hashes": ["zz"]}]},
    ],
)
def test_malformed_commits_are_400(http: Client, body: Any) -> None:
    assert_error(http.post("/blobs/commit", body), 400)


def test_a_chunk_is_served_only_when_a_file_holds_it(http: Client, area: str) -> None:
    content = os.urandom(500)
    name = upload(http, content)
    assert_error(http.get(f"/blobs/{name}"), 404, "NOT_FOUND")
    file = {"path": f"{area}/holder", "content_type": "a/b", "chunk_hashes": [name]}
    assert http.post("/blobs/commit", {"files": [file]}).status == 200
    response = http.get(f"/blobs/{name}")
    assert (response.status, response.body) == (200, content)
    assert_error(http.get(f"/blobs/{digest(os.urandom(8))}"), 404, "NOT_FOUND")


def test_a_chunk_larger_than_the_most_is_413_before_it_is_sent(http: Client, shared_server: Any) -> None:
    limit = http.get("/blobs/config").json()["chunk_size"]
    with RawConnection(shared_server.url) as connection:
        connection.send(
            f"PUT /blobs/chunks/{'0' * 64} HTTP/1.1\r\nHost: x\r\nContent-Length: {limit + 1}\r\n"
            "Expect: 100-continue\r\n\r\n".encode()
        )
        response = connection.response()
        assert response is not None
        if response.status == 100:
            connection.send(b"x" * (limit + 1))
            response = connection.response()
        assert response is not None
        assert response.status == 413


def test_stored_files_give_up_their_chunks_to_whoever_may_read_them(http: Client, area: str) -> None:
    small = os.urandom(100)
    http.store(f"{area}/small", small)
    assert http.get(f"/blobs/{digest(small)}").body == small
