"""``POST /sync/diff`` and ``/sync/chunks``: pages, bounds, globs, and what a caller is not told."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest
from blake3 import blake3
from falcon.testing import TestClient

from svc.plugin import ROOT_IDENTITY, Identity, ScopedRule
from svc.plugins import Plugins, configure
from svc_testing import PathRights, load_with_testing_auth, serve_in_process, simulate_collection

USER = "7f0a2b1c-0000-4000-8000-000000000001"


class Http:
    def __init__(self, app: Any, database: Any, mode: Any) -> None:
        self.database = database
        self._mode = mode
        self._client = TestClient(app)

    def become(self, identity: Identity) -> None:
        self._mode.identity = identity

    def post(self, path: str, body: Any, **headers: str) -> Any:
        headers = {"Content-Type": "application/json", **headers}
        return self._client.simulate_request("POST", path, body=json.dumps(body), headers=headers)

    def diff(self, **body: Any) -> Any:
        answer = self.post("/sync/diff", body)
        assert answer.status_code == 200, answer.text
        return answer.json

    def write(self, files: dict[str, str | bytes | None]) -> None:
        with self.database.transaction() as transaction:
            for path, content in files.items():
                segments = tuple(path.split("/"))
                if content is None:
                    transaction.delete(segments, recursive=True)
                else:
                    data = content if isinstance(content, bytes) else content.encode()
                    transaction.put(segments, data, content_type="text/plain")


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_with_testing_auth("files", "mirror")


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "t.svcdb", plugins) as (app, database, mode):
        yield Http(app, database, mode)


def user(**flags: str) -> Identity:
    rights = PathRights({path.replace("_", "/"): letters for path, letters in flags.items()})
    rights.fingerprint = blake3(repr(flags).encode()).digest()  # type: ignore[attr-defined]
    return Identity(USER, "user", rights=rights)


def named(page: Any) -> dict[str, list[str]]:
    """The lists of a page that are not empty."""
    return {name: [item["path"] for item in items] for name, items in page["changes"].items() if items}


def test_a_file_is_told_with_what_it_takes_to_fetch_it(http: Http) -> None:
    http.write({"a": "one", "empty": b""})
    page = http.diff()
    file, empty = page["changes"]["files_added"]
    assert file == {
        "path": "/a",
        "hash": blake3(b"one").hexdigest(),
        "size": 3,
        "content_type": "text/plain",
        "created_at": file["created_at"],
        "updated_at": file["updated_at"],
        "is_readable": True,
        "chunk_hashes": [blake3(b"one").hexdigest()],
        "chunk_sizes": [3],
    }
    assert empty["chunk_hashes"] == []
    assert page["chunk_hashes_needed"] == [blake3(b"one").hexdigest()]
    assert page["root_hash"] == http.database.head().root.hex()
    assert (page["is_first"], page["is_whole"], page["has_more"]) == (True, True, False)


def test_a_token_and_a_root_hash_lead_to_what_changed(http: Http) -> None:
    http.write({"a": "one", "d/b": "two", "d/c": "three"})
    first = http.diff()
    http.write({"a": "changed", "d/b": None, "e/f/g": "new"})
    for since in ({"since": first["since"]}, {"since_root_hash": first["root_hash"]}):
        page = http.diff(**since)
        assert not page["is_whole"]
        assert named(page) == {
            "files_modified": ["/a"],
            "files_deleted": ["/d/b"],
            "directories_added": ["/e", "/e/f"],
            "files_added": ["/e/f/g"],
        }
        assert named(http.diff(since=page["since"])) == {}
    http.write({"d": None, "e/f/g": None})
    page = http.diff(since=page["since"])
    assert named(page) == {"directories_deleted": ["/d"], "files_deleted": ["/d/c", "/e/f/g"]}


def test_a_file_in_the_place_of_a_directory_is_one_that_went_and_one_that_came(http: Http) -> None:
    http.write({"d/b": "two"})
    token = http.diff()["since"]
    http.write({"d": None})
    http.write({"d": "file"})
    page = http.diff(since=token)
    assert named(page) == {
        "directories_deleted": ["/d"],
        "files_added": ["/d"],
        "files_deleted": ["/d/b"],
    }


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_pages_have_everything_once_also_when_somebody_writes_between_them(http: Http, limit: int) -> None:
    paths = [f"d{number % 3}/e/{number}" for number in range(20)]
    http.write(dict.fromkeys(paths, "content"))
    found: list[str] = []
    page: Any = {"since": None, "has_more": True}
    while page["has_more"]:
        page = http.diff(since=page["since"], limit=limit)
        files = named(page).get("files_added", [])
        assert sum(map(len, named(page).values())) <= limit
        found += files
        http.write({"d1/later": f"{len(found)}"})
    assert found == sorted(f"/{path}" for path in paths)
    assert named(http.diff(since=page["since"])) == {"files_added": ["/d1/later"]}


def test_a_page_looks_at_a_bounded_number_of_entries(http: Http, plugins: Plugins) -> None:
    http.write({f"d/{number:03}": "hidden" for number in range(100)})
    http.write({"d/zzz": "shown"})
    configure(http.database, plugins, "mirror", {"scan_entries": 10})
    rules = (ScopedRule("/d/z*", "-r--l---"),)
    http.become(Identity(None, "share", key_id="key", rules=rules))
    page: Any = {"since": None, "has_more": True}
    pages = []
    while page["has_more"]:
        page = http.diff(since=page["since"])
        pages.append(named(page))
    assert len(pages) == 11
    assert pages[-1] == {"files_added": ["/d/zzz"]}


def test_what_changes_where_nothing_is_granted_costs_and_tells_nothing(http: Http, plugins: Plugins) -> None:
    http.write({"mine/a/file": "one"} | {f"hidden{number:03}/x": "x" for number in range(100)})
    configure(http.database, plugins, "mirror", {"scan_entries": 10})
    http.become(user(_mine_a="rl"))
    page = http.diff()
    assert not page["has_more"]
    assert page["root_hash"] is None
    assert named(page) == {"directories_added": ["/mine", "/mine/a"], "files_added": ["/mine/a/file"]}
    http.become(ROOT_IDENTITY)
    http.write({f"hidden{number:03}/x": "y" for number in range(100)})
    http.become(user(_mine_a="rl"))
    quiet = http.diff(since=page["since"])
    assert (named(quiet), quiet["has_more"]) == ({}, False)
    again = http.diff(since=page["since"])
    # Not even whether anything changed: a token is another one each time.
    assert len({page["since"], quiet["since"], again["since"]}) == 3
    assert len({len(one["since"]) for one in (page, quiet, again)}) == 1


def test_other_rights_begin_anew_and_hide_what_went(http: Http) -> None:
    http.write({"a/file": "one", "b/file": "two"})
    http.become(user(_a="rl"))
    token = http.diff()["since"]
    http.become(user(_b="rl"))
    page = http.diff(since=token)
    assert (page["is_first"], page["is_whole"]) == (True, True)
    assert named(page) == {"directories_added": ["/b"], "files_added": ["/b/file"]}


def test_a_file_that_may_only_be_listed_has_no_chunks(http: Http) -> None:
    http.write({"a": "one"})
    http.become(user(_="l"))
    (file,) = http.diff()["changes"]["files_added"]
    assert (file["is_readable"], file["chunk_hashes"], file["chunk_sizes"]) == (False, None, None)


def test_globs_say_what_is_told(http: Http) -> None:
    http.write({"a/x.txt": "one", "a/y": "two", "b/x.txt": "three"})
    page = http.diff(paths=["/a/**"])
    assert named(page) == {"directories_added": ["/a"], "files_added": ["/a/x.txt", "/a/y"]}
    assert named(http.diff(paths=["/**/*.txt"])) == {"files_added": ["/a/x.txt", "/b/x.txt"]}
    assert http.diff(since=page["since"])["is_whole"], "a token is for the globs that it was given for"
    assert http.post("/sync/diff", {"paths": ["/a"] * 101}).status_code == 400


def test_a_collected_version_is_said_to_be_one(http: Http) -> None:
    http.write({"a": "one"})
    token = http.diff()["since"]
    http.write({"a": "two"})
    simulate_collection(http.database)
    answer = http.post("/sync/diff", {"since": token})
    assert (answer.status_code, answer.json["collected"]) == (404, True)


def test_roots_that_a_caller_was_not_given_are_refused(http: Http) -> None:
    http.write({"a": "one"})
    root = http.database.head().root.hex()
    token = http.diff()["since"]
    assert http.post("/sync/diff", {"since": token, "since_root_hash": root}).status_code == 400
    assert http.post("/sync/diff", {"since_root_hash": "00"}).status_code == 400
    http.become(user(_a="rl"))
    assert http.post("/sync/diff", {"since_root_hash": root}).status_code == 403
    for forged in ("", "A", token[:-8], "é", base64.urlsafe_b64encode(bytes(64)).decode()):
        assert http.post("/sync/diff", {"since": forged}).status_code == 400, forged


def test_chunks_come_as_json_or_cbor_as_many_as_fit(http: Http, plugins: Plugins) -> None:
    contents = [bytes([number]) * 1000 for number in range(5)]
    http.write({str(number): content for number, content in enumerate(contents)})
    hashes = [blake3(content).hexdigest() for content in contents]
    configure(http.database, plugins, "mirror", {"chunk_bytes": 2500})
    answer = http.post("/sync/chunks", {"hashes": [*hashes[:1], "0" * 64, *hashes[1:]]})
    assert [base64.b64decode(chunk["data"]) for chunk in answer.json["chunks"]] == contents[:3]
    assert answer.json["missing"] == ["0" * 64]
    packed = http.post("/sync/chunks", {"hashes": hashes[3:]}, Accept="application/cbor")
    assert packed.headers["content-type"] == "application/cbor"
    assert [chunk["data"] for chunk in cbor2.loads(packed.content)["chunks"]] == contents[3:]
    assert http.post("/sync/chunks", {"hashes": ["00"]}).status_code == 400
    assert http.post("/sync/chunks", {"hashes": hashes * 201}).status_code == 400


def test_a_file_of_many_chunks_names_them_in_parts(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    content = random.Random(1).randbytes(20_000_000)
    http.write({"large": content})
    (file,) = http.diff()["changes"]["files_added"]
    assert file["chunk_hashes"] is None
    monkeypatch.setattr("svc_mirror.chunks._MOST_NAMED", 100)
    sizes: list[int] = []
    has_more = True
    while has_more:
        question = {"path": "/large", "content_hash": file["hash"], "first": len(sizes)}
        page = http.post("/sync/chunks", question).json
        sizes += page["chunk_sizes"]
        has_more = page["has_more"]
    assert sum(sizes) == len(content)
    assert len(sizes) > 200
