"""``/blobs``: chunks uploaded once, files made of them, and nobody reading by hash what is not theirs."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from blake3 import blake3

from svc.objects import chunking
from svc.plugin import ROOT_IDENTITY, Database, Identity, View, parse_hash
from svc_files.chunk_commits import CHUNKING
from svc_files.chunk_holders import ChunkHoldersView
from svc_files.client_chunks import CLIENT_CHUNKS_VIEW, ClientChunksView, note_client_chunks
from svc_testing import ViewContract

from .conftest import Http, scoped_root, share_key, user  # noqa: TID252


class TestChunkHoldersView(ViewContract):
    @pytest.fixture
    def view(self) -> View:
        return ChunkHoldersView()


class TestClientChunksView(ViewContract):
    @pytest.fixture
    def view(self) -> View:
        return ClientChunksView()

    def history(self, database: Database) -> Iterator[None]:
        """Files of chunks that their clients cut otherwise: small ones, large ones, and one that goes."""
        for number, size in enumerate((500, 60_000, 60_000, 700)):
            chunks = [random.Random(10 * number + part).randbytes(size) for part in range(4)]
            hashes = [blake3(chunk).digest() for chunk in chunks]
            for hash, chunk in zip(hashes, chunks, strict=True):
                database.put_chunks({hash: chunk})
            content = database.content_of_chunks(hashes)
            with database.transaction() as transaction:
                transaction.put((str(number),), content)
                note_client_chunks(transaction, database, content, hashes)
            yield
            if number == 1:
                with database.transaction() as transaction:
                    transaction.delete(("1",))
                yield

    def test_the_history_gives_rows(self, view: View, tmp_path: Path) -> None:
        with Database(tmp_path / "x.svcdb") as database:
            for _ in self.history(database):
                pass
            rows = database.register_view(view).read(lambda storage: list(storage.scan()))
            assert len(rows) == 16


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

    @pytest.mark.parametrize(
        ("who", "status"),
        [
            (user({}), 403),
            (user({"/": "rl"}), 403),
            (user({"/": "rld", "/a/b": "y"}), 403),
            (user({"/a/b": "c"}), 201),
            (user({"/a/b": "u"}), 201),
            (scoped_root(("/**", "-r-dl---")), 404),
            (scoped_root(("/read/**", "-r--l---"), ("/a/**", "--u-----")), 201),
        ],
    )
    def test_who_may_write_nowhere_uploads_nothing(self, http: Http, who: Identity, status: int) -> None:
        http.become(who)
        assert http.put(f"/blobs/chunks/{name(b'x')}", b"x").status_code == status
        assert http.database.has_chunk(parse_hash(name(b"x")) or b"") is (status == 201)

    def test_a_check_keeps_chunks_only_for_those_who_may_make_files_of_them(self, http: Http) -> None:
        http.put("/files/open/a", b"readable")
        pins = len(list(http.database.pins_since(0)))
        for rights, kept in (({"/open": "rl"}, 0), ({"/open": "rl", "/mine": "c"}, 1)):
            http.become(user(rights))
            assert http.post("/blobs/check", {"hashes": [name(b"readable")]}).json["needed"] == []
            assert len(list(http.database.pins_since(0))) == pins + kept

    def test_a_share_key_uploads_only_where_it_may_create(self, http: Http) -> None:
        http.become(share_key(("/drop/**", "c-------"), ("/read/**", "-r--l---")))
        route = f"/blobs/chunks/{name(b'x')}"
        assert http.put(route, b"x").status_code == 404
        assert http.put(route, b"x", params={"path": "/read/a"}).status_code == 404
        assert http.put(route, b"x", params={"path": "/drop/a"}).status_code == 201
        assert commit(http, "/drop/a", name(b"x")) == 200
        assert commit(http, "/drop/a", name(b"x")) == 404


def cut(content: bytes, size: int) -> list[bytes]:
    """What ``split -b`` makes of a content."""
    return [content[start : start + size] for start in range(0, len(content), size)]


def needed(http: Http, hashes: list[str]) -> list[str]:
    found: list[str] = http.post("/blobs/check", {"hashes": hashes}).json["needed"]
    return found


CONTENT = random.Random(16).randbytes(1_500_000)


class TestChunksAsTheClientCutThem:
    """What was committed by a hash is read by it and used by it, however the database cuts."""

    ANN = user({"/ann": "crudl"})
    BOB = user({"/bob": "crudl"}, "bob")

    def commit_cut(
        self, http: Http, path: str, size: int, content: bytes = CONTENT, **query: str
    ) -> list[str]:
        hashes = [upload(http, piece) for piece in cut(content, size)]
        files = [{"path": path, "chunk_hashes": hashes, "content_hash": name(content)}]
        assert http.post("/blobs/commit", {"files": files}, params=query).status_code == 200
        return hashes

    @pytest.mark.parametrize("size", [1_000, 65_536, 100_000, 262_144])
    def test_every_chunk_is_readable(self, http: Http, size: int) -> None:
        content = CONTENT[:200_000] if size == 1_000 else CONTENT
        hashes = self.commit_cut(http, "/file", size, content)
        for hash, piece in zip(hashes, cut(content, size), strict=True):
            answer = http.get(f"/blobs/{hash}")
            assert (answer.status_code, answer.content) == (200, piece)
        assert http.get(f"/blobs/{hashes[0]}", headers={"Range": "bytes=1-2"}).content == content[1:3]

    def test_a_small_content_in_pieces_too(self, http: Http) -> None:
        hashes = self.commit_cut(http, "/file", 7, b"one piece for the database")
        assert (
            b"".join(http.get(f"/blobs/{hash}").content for hash in hashes) == b"one piece for the database"
        )

    def test_equal_content_is_one_version_however_it_came_in(self, http: Http) -> None:
        options = {"content_type": "a/b", "created_at": 1, "updated_at": 1}
        versions = set()
        for size in (100_000, 262_144):
            hashes = [upload(http, piece) for piece in cut(CONTENT, size)]
            files = [{"path": "/file", "chunk_hashes": hashes, **options}]
            versions.add(http.post("/blobs/commit", {"files": files}).json["version"])
        assert len(versions) == 1

    def test_both_cuts_of_one_content_stay_readable(self, http: Http) -> None:
        hashes = self.commit_cut(http, "/a", 100_000) + self.commit_cut(http, "/b", 262_144)
        assert [http.get(f"/blobs/{hash}").status_code for hash in hashes] == [200] * len(hashes)

    def test_a_second_commit_needs_no_upload(self, http: Http) -> None:
        http.become(self.ANN)
        hashes = self.commit_cut(http, "/ann/first", 262_144)
        forget_uploads(http)
        assert needed(http, hashes) == []
        assert commit(http, "/ann/second", *hashes, size=len(CONTENT)) == 200
        operations = [{"op": "put", "path": "/ann/third", "chunk_hashes": hashes}]
        assert http.post("/files/batch", {"operations": operations}).status_code == 200
        assert http.get("/files/ann/third").content == CONTENT

    def test_a_batch_notes_them_too(self, http: Http) -> None:
        hashes = [upload(http, piece) for piece in cut(CONTENT, 262_144)]
        operations = [
            {"op": "put", "path": "/a", "chunk_hashes": hashes},
            {"op": "put", "path": "/b", "content": "b"},
        ]
        answer = http.post("/files/batch", {"operations": operations})
        assert [result["path"] for result in answer.json["results"]] == ["/a", "/b"]
        assert [http.get(f"/blobs/{hash}").status_code for hash in hashes] == [200] * len(hashes)

    def test_who_may_read_the_file_may_read_them_and_nobody_else(self, http: Http) -> None:
        http.become(self.ANN)
        hashes = self.commit_cut(http, "/ann/file", 262_144)
        http.become(self.BOB)
        assert {http.get(f"/blobs/{hash}").status_code for hash in hashes} == {404}
        assert needed(http, hashes) == hashes
        assert commit(http, "/bob/stolen", *hashes) == 400
        http.become(user({"/ann": "r"}, "reader"))
        assert {http.get(f"/blobs/{hash}").status_code for hash in hashes} == {200}

    def test_a_chunk_that_lies_partly_in_what_one_may_not_read_is_not_there(self, http: Http) -> None:
        http.become(ROOT_IDENTITY)
        hashes = self.commit_cut(http, "/ann/whole", 262_144)
        entry = http.database.at().get(("ann", "whole"))
        assert entry is not None
        first = http.database.chunk(http.database.at().chunks(entry)[0][0])
        http.put("/files/bob/part", first)
        http.become(self.BOB)
        assert http.get(f"/blobs/{name(first)}").content == first
        assert http.get(f"/blobs/{hashes[0]}").status_code == 404

    def test_a_deleted_file_takes_them_along_and_brings_them_back(self, http: Http) -> None:
        http.become(self.ANN)
        hashes = self.commit_cut(http, "/ann/file", 262_144)
        forget_uploads(http)
        http.delete("/files/ann/file")
        assert {http.get(f"/blobs/{hash}").status_code for hash in hashes} == {404}
        assert needed(http, hashes) == hashes
        assert http.post("/files/restore", {"path": "/ann/file"}).status_code == 200
        assert {http.get(f"/blobs/{hash}").status_code for hash in hashes} == {200}

    def test_what_an_edit_left_of_a_file_stays_readable(self, http: Http) -> None:
        hashes = self.commit_cut(http, "/file", 262_144)
        http.put("/files/file", CONTENT[:900_000] + b"another end")
        answers = [http.get(f"/blobs/{hash}").status_code for hash in hashes]
        assert answers[:2] == [200, 200]
        assert answers[-1] == 404

    def test_a_fork_has_them_when_it_is_head(self, http: Http) -> None:
        http.put("/files/before", b"x")
        with http.database.transaction() as transaction:
            transaction.copy_ref("HEAD", "forks/draft")
        hashes = self.commit_cut(http, "/file", 262_144, fork="draft")
        assert http.get("/files/file", params={"fork": "draft"}).content == CONTENT
        assert {http.get(f"/blobs/{hash}").status_code for hash in hashes} == {404}, (
            "a file at HEAD is asked for"
        )
        with http.database.transaction() as transaction:
            transaction.set_ref("HEAD", http.database.resolve_version(fork="draft"))
        assert {http.get(f"/blobs/{hash}").status_code for hash in hashes} == {200}

    def test_the_database_s_own_cut_is_not_noted(self, http: Http) -> None:
        http.put("/files/file", CONTENT)
        entry = http.database.at().get(("file",))
        assert entry is not None
        own = [hash.hex() for hash, _ in http.database.at().chunks(entry)]
        before = http.database.head().system_root
        assert commit(http, "/again", *own) == 200
        assert http.database.head().system_root == before
        assert commit(http, "/short", upload(http, b"short")) == 200
        assert http.database.head().system_root == before

    def test_the_same_cut_is_noted_once(self, http: Http) -> None:
        hashes = self.commit_cut(http, "/a", 262_144)
        before = http.database.head().system_root
        assert commit(http, "/b", *hashes) == 200
        assert http.database.head().system_root == before

    def test_without_its_record_a_chunk_is_read_out_of_the_file_and_stored_again(
        self, http: Http, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What a collection leaves: the file, its note, and no chunk that no file record names."""
        hashes = self.commit_cut(http, "/file", 262_144)
        collected = {bytes.fromhex(hash) for hash in hashes}
        has_chunk, put_chunks = Database.has_chunk, Database.put_chunks

        def put(database: Database, chunks: Mapping[bytes, bytes]) -> bool:
            collected.difference_update(chunks)
            return put_chunks(database, chunks)

        monkeypatch.setattr(
            Database, "has_chunk", lambda database, hash: hash not in collected and has_chunk(database, hash)
        )
        monkeypatch.setattr(Database, "put_chunks", put)
        for hash, piece in zip(hashes, cut(CONTENT, 262_144), strict=True):
            assert http.get(f"/blobs/{hash}").content == piece
        assert needed(http, hashes) == []
        assert commit(http, "/again", *hashes, content_hash=name(CONTENT)) == 200
        assert collected == set()

    def test_their_view_is_made_anew_from_the_log(self, http: Http) -> None:
        hashes = self.commit_cut(http, "/file", 262_144)
        view = http.database.view(CLIENT_CHUNKS_VIEW)
        rows = view.read(lambda storage: list(storage.scan()))
        assert len(rows) == len(hashes)
        view.rebuild()
        assert view.read(lambda storage: list(storage.scan())) == rows

    def test_a_false_row_never_gives_false_bytes(self, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
        import svc_files.client_chunks as client_chunks

        hashes = self.commit_cut(http, "/file", 262_144)
        own = [hash for hash, _ in http.database.at().chunks(http.database.at().get(("file",)))]  # type: ignore[arg-type]
        monkeypatch.setattr(Database, "has_chunk", lambda _, hash: hash.hex() not in hashes)
        monkeypatch.setattr(client_chunks, "_places", lambda *_: [(1, 100, own[:1])])
        assert http.get(f"/blobs/{hashes[0]}").status_code == 404


def forget_uploads(http: Http) -> None:
    """A day later: who uploaded what is forgotten."""
    shutil.rmtree(http.database.state_directory / "files" / "uploads", ignore_errors=True)
