"""``/blobs``: chunks uploaded once, files made of them, and nobody reading by hash what is not theirs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from blake3 import blake3

from svc.database import View
from svc.objects import chunking
from svc.testing import ViewContract
from svc_files.chunk_access import ChunkHoldersView
from svc_files.resources.blobs import CHUNKING

from .conftest import Http, share_key, user  # noqa: TID252


class TestChunkHoldersView(ViewContract):
    @pytest.fixture
    def view(self) -> View:
        return ChunkHoldersView()


def name(content: bytes) -> str:
    return blake3(content).hexdigest()


def upload(http: Http, content: bytes) -> str:
    assert http.put(f"/blobs/chunks/{name(content)}", content).status_code in (200, 201)
    return name(content)


def commit(http: Http, path: str, *hashes: str, **more: object) -> int:
    file = {"path": path, "chunk_hashes": list(hashes), **more}
    return http.post("/blobs/commit", {"files": [file]}).status_code


def test_the_configuration_is_public_and_true(http: Http) -> None:
    answer = http.get("/blobs/config").json
    assert answer["hash_algorithm"] == "blake3"
    assert answer["chunk_hash_prefix"] == ""
    assert answer["chunk_size"] == chunking.MAXIMUM_CHUNK == CHUNKING["maximum"]
    assert answer["chunking"]["minimum"] == chunking.MINIMUM_CHUNK
    assert answer["chunking"]["average"] == chunking.AVERAGE_CHUNK
    assert answer["chunking"]["whole_limit"] == chunking.WHOLE_LIMIT


def test_a_chunk_is_created_once(http: Http) -> None:
    first = http.put(f"/blobs/chunks/{name(b'x')}", b"x")
    again = http.put(f"/blobs/chunks/{name(b'x')}", b"x")
    assert (first.status_code, first.json["status"]) == (201, "created")
    assert (again.status_code, again.json["status"]) == (200, "exists")


def test_wrong_bytes_are_400_and_too_many_413(http: Http) -> None:
    assert http.put(f"/blobs/chunks/{name(b'x')}", b"y").status_code == 400
    assert http.put("/blobs/chunks/xyz", b"y").status_code == 400
    assert http.put(f"/blobs/chunks/{name(b'')}", b"").status_code == 400
    big = b"x" * (256 * 1024 + 1)
    assert http.put(f"/blobs/chunks/{name(big)}", big).status_code == 413
    assert http.post("/blobs/check", {"hashes": [name(b"x")]}).json == {"have": [], "needed": [name(b"x")]}


def test_check_sorts_hashes(http: Http) -> None:
    upload(http, b"one")
    body = {"hashes": [name(b"two"), name(b"one"), name(b"two")]}
    assert http.post("/blobs/check", body).json == {"have": [name(b"one")], "needed": [name(b"two")]}
    assert http.post("/blobs/check", {"hashes": ["zz"]}).status_code == 400
    assert http.post("/blobs/check", {}).status_code == 400


def test_check_is_limited(http: Http, set_limits: Callable[..., None]) -> None:
    set_limits(maximum_chunks=1)
    assert http.post("/blobs/check", {"hashes": [name(b"1"), name(b"2")]}).status_code == 413


def test_files_are_made_of_chunks_in_one_commit(http: Http) -> None:
    pieces = [bytes([number]) * 100_000 for number in range(5)]
    hashes = [upload(http, piece) for piece in pieces]
    whole = b"".join(pieces)
    sequence = http.database.head().sequence
    answer = http.post(
        "/blobs/commit",
        {
            "files": [
                {
                    "path": "/d/whole.bin",
                    "content_type": "application/x-whole",
                    "chunk_hashes": hashes,
                    "size": len(whole),
                    "content_hash": name(whole),
                },
                {"path": "/part.txt", "chunk_hashes": hashes[:1]},
                {"path": "/empty", "chunk_hashes": []},
            ]
        },
    )
    assert answer.status_code == 200
    assert [file["path"] for file in answer.json["committed"]] == ["/d/whole.bin", "/part.txt", "/empty"]
    assert http.database.head().sequence == sequence + 1
    read = http.get("/files/d/whole.bin")
    assert (read.content, read.headers["content-type"]) == (whole, "application/x-whole")
    assert http.put("/files/same.bin", whole, headers={"Content-Type": "application/x-whole"}).json[
        "content_hash"
    ] == name(whole)


def test_what_is_missing_or_false_is_400_and_nothing_is_stored(http: Http) -> None:
    here = upload(http, b"here")
    files = [
        {"path": "/a", "chunk_hashes": [here, name(b"gone")]},
        {"path": "/b", "chunk_hashes": [name(b"off")]},
    ]
    answer = http.post("/blobs/commit", {"files": files})
    assert answer.status_code == 400
    assert sorted(answer.json["missing"]) == sorted([name(b"gone"), name(b"off")])
    assert commit(http, "/a", here, size=5) == 400
    assert commit(http, "/a", here, content_hash=name(b"other")) == 400
    assert commit(http, "/a", here, content_hash="x") == 400
    assert commit(http, "/a", here, content_type="x") == 400
    assert commit(http, "/../a", here) == 400
    assert commit(http, "/.system/a", here) == 404
    assert http.post("/blobs/commit", {"files": []}).status_code == 400
    assert http.items("/files") == []


def test_a_conflict_names_the_file(http: Http) -> None:
    here = upload(http, b"here")
    http.fill("/d/e")
    files = [{"path": "/a", "chunk_hashes": [here]}, {"path": "/d", "chunk_hashes": [here]}]
    answer = http.post("/blobs/commit", {"files": files})
    assert (answer.status_code, answer.json["operation"]) == (409, 1)
    assert http.get("/files/a").status_code == 404


def test_a_chunk_reads_back_with_ranges_and_conditions(http: Http) -> None:
    http.put("/files/a", b"hello")
    answer = http.get(f"/blobs/{name(b'hello')}")
    assert (answer.content, answer.headers["content-type"]) == (b"hello", "application/octet-stream")
    assert http.get(f"/blobs/{name(b'hello')}", headers={"Range": "bytes=1-2"}).content == b"el"
    assert (
        http.get(f"/blobs/{name(b'hello')}", headers={"If-None-Match": answer.headers["etag"]}).status_code
        == 304
    )
    assert http.get(f"/blobs/{name(b'other')}").status_code == 404
    assert http.get("/blobs/short").status_code == 400


def test_batch_takes_chunks_too(http: Http) -> None:
    hashes = [upload(http, b"one"), upload(http, b"two")]
    operations = [{"op": "put", "path": "/a", "chunk_hashes": hashes}]
    assert http.post("/files/batch", {"operations": operations}).status_code == 200
    assert http.get("/files/a").content == b"onetwo"


class TestOwnership:
    """Knowing a hash is no permission."""

    ANN = user({"/ann": "crudl"})
    BOB = user({"/bob": "crudl"}, "bob")

    def test_a_chunk_is_read_only_by_whom_may_read_a_file_that_holds_it(self, http: Http) -> None:
        http.put("/files/ann/secret", b"secret")
        http.become(self.ANN)
        assert http.get(f"/blobs/{name(b'secret')}").content == b"secret"
        http.become(self.BOB)
        assert http.get(f"/blobs/{name(b'secret')}").status_code == 404

    def test_root_too_reads_only_what_a_file_holds(self, http: Http) -> None:
        uploaded = upload(http, b"uploaded")
        assert http.get(f"/blobs/{uploaded}").status_code == 404
        assert http.post("/blobs/check", {"hashes": [uploaded]}).json["have"] == [uploaded]
        assert commit(http, "/held", uploaded) == 200
        assert http.get(f"/blobs/{uploaded}").content == b"uploaded"
        http.delete("/files/held")
        assert http.get(f"/blobs/{uploaded}").status_code == 404
        assert commit(http, "/again", uploaded) == 200
        assert http.get(f"/blobs/{uploaded}").content == b"uploaded"

    def test_a_chunk_of_a_large_file_counts_too(self, http: Http) -> None:
        content = bytes(range(256)) * 2000
        http.put("/files/ann/large", content)
        version = http.database.at()
        entry = version.get(("ann", "large"))
        assert entry is not None
        chunks = [hash.hex() for hash, _ in version.chunks(entry)]
        assert len(chunks) > 1
        http.become(self.ANN)
        assert all(http.get(f"/blobs/{chunk}").status_code == 200 for chunk in chunks)
        http.become(self.BOB)
        assert all(http.get(f"/blobs/{chunk}").status_code == 404 for chunk in chunks)

    def test_files_are_not_stolen_by_committing_their_hashes(self, http: Http) -> None:
        http.put("/files/ann/secret", b"secret")
        http.become(self.BOB)
        assert http.post("/blobs/check", {"hashes": [name(b"secret")]}).json["have"] == []
        assert commit(http, "/bob/stolen", name(b"secret")) == 400
        operations = [{"op": "put", "path": "/bob/stolen", "chunk_hashes": [name(b"secret")]}]
        assert http.post("/files/batch", {"operations": operations}).status_code == 400

    def test_who_has_the_bytes_may_use_them_and_learns_nothing(self, http: Http) -> None:
        http.put("/files/ann/secret", b"secret")
        http.become(self.BOB)
        answer = http.put(f"/blobs/chunks/{name(b'secret')}", b"secret")
        assert (answer.status_code, answer.json["status"]) == (201, "created")
        assert http.post("/blobs/check", {"hashes": [name(b"secret")]}).json["needed"] == []
        assert commit(http, "/bob/mine", name(b"secret")) == 200
        assert http.get("/files/bob/mine").content == b"secret"

    def test_a_file_that_is_gone_is_no_permission(self, http: Http) -> None:
        http.put("/files/ann/a", b"secret")
        http.delete("/files/ann/a")
        http.become(self.ANN)
        assert http.get(f"/blobs/{name(b'secret')}").status_code == 404

    def test_a_share_key_uploads_only_where_it_may_create(self, http: Http) -> None:
        http.become(share_key(("/drop/**", "c-------"), ("/read/**", "-r--l---")))
        route = f"/blobs/chunks/{name(b'x')}"
        assert http.put(route, b"x").status_code == 404
        assert http.put(route, b"x", params={"path": "/read/a"}).status_code == 404
        assert http.put(route, b"x", params={"path": "/drop/a"}).status_code == 201
        assert commit(http, "/drop/a", name(b"x")) == 200
        assert commit(http, "/drop/a", name(b"x")) == 404
