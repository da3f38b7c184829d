"""``/files/{path}``: storing, reading, deleting, with conditions and ranges."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from blake3 import blake3

from svc.plugin import Database, Entry, Limits

from .conftest import Http  # noqa: TID252

SANDBOX = {"sandbox", "script-src 'none'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'self'"}
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


def test_a_new_file_is_created_and_reads_back(http: Http) -> None:
    answer = http.put("/files/docs/hello.txt", b"hello")
    assert answer.status_code == 201
    assert set(answer.json) == {
        "path",
        "size",
        "content_type",
        "content_hash",
        "created_at",
        "updated_at",
        "version",
    }
    assert answer.json["path"] == "/docs/hello.txt"
    assert answer.json["content_hash"] == blake3(b"hello").hexdigest()
    assert answer.headers["location"] == "/files/docs/hello.txt"
    read = http.get("/files/docs/hello.txt")
    assert (read.status_code, read.content) == (200, b"hello")


def test_every_header_of_a_file_is_there(http: Http) -> None:
    stored = http.put("/files/a.txt", b"hello").json
    headers = http.get("/files/a.txt").headers
    assert headers["content-type"] == "text/plain"
    assert headers["content-length"] == "5"
    assert headers["accept-ranges"] == "bytes"
    assert headers["etag"] == f'"{stored["content_hash"]}"'
    assert headers["last-modified"].endswith(" GMT")
    assert headers["x-svc-entry-type"] == "file"
    assert headers["x-svc-path"] == "/a.txt"
    assert headers["x-svc-size"] == "5"
    assert headers["x-svc-created-at"] == str(stored["created_at"])
    assert headers["x-svc-updated-at"] == str(stored["updated_at"])
    assert headers["x-svc-content-hash"] == stored["content_hash"]
    assert headers["x-svc-version"] == stored["version"]
    assert headers["x-content-type-options"] == "nosniff"


def test_head_has_the_headers_of_get_and_no_body(http: Http) -> None:
    http.put("/files/a.txt", b"hello")
    get, head = http.get("/files/a.txt"), http("HEAD", "/files/a.txt")
    volatile = {"x-request-id", "date"}
    assert {k: v for k, v in head.headers.items() if k not in volatile} == {
        k: v for k, v in get.headers.items() if k not in volatile
    }
    assert head.content == b""


def test_files_and_engine_are_the_same_resource(http: Http) -> None:
    assert http.put("/engine/a", b"1").status_code == 201
    assert http.get("/files/a").content == b"1"
    assert http.put("/files/a", b"2").status_code == 200
    assert http.get("/engine/a").content == b"2"
    assert http.delete("/engine/a").status_code == 200
    assert http.get("/files/a").status_code == 404


def test_replacing_keeps_the_time_of_creation_and_answers_200(http: Http) -> None:
    first = http.put("/files/a", b"1").json
    second = http.put("/files/a", b"2")
    assert second.status_code == 200
    assert second.json["created_at"] == first["created_at"]
    assert second.json["version"] != first["version"]


def test_a_caller_may_keep_a_files_own_times(http: Http) -> None:
    headers = {"X-Svc-Created-At": "1000", "X-Svc-Updated-At": "2000"}
    answer = http.put("/files/a", b"1", headers=headers)
    assert (answer.json["created_at"], answer.json["updated_at"]) == (1000, 2000)
    assert http.get("/files/a").headers["last-modified"] == "Thu, 01 Jan 1970 00:00:02 GMT"


@pytest.mark.parametrize("value", ["", "x", "-1", "9" * 400, "99999999999999999"])
def test_a_malformed_time_is_refused(http: Http, value: str) -> None:
    assert http.put("/files/a", b"1", headers={"X-Svc-Updated-At": value}).status_code == 400


@pytest.mark.parametrize(
    ("name", "header", "content", "expected"),
    [
        ("a.txt", "application/x-own; v=1", b"x", "application/x-own; v=1"),
        ("a.txt", None, PNG, "image/png"),
        ("a.csv", None, b"a,b\n", "text/csv"),
        ("a.csv", "application/x-www-form-urlencoded", b"a,b\n", "text/csv"),
        ("README", None, "läuft\n".encode(), "text/plain"),
        ("blob", None, b"\x00\x01\x02\x03", "application/octet-stream"),
        ("blob", None, b"", "application/octet-stream"),
        ("a.tar.gz", None, b"", "application/gzip"),
    ],
)
def test_the_content_type_is_the_headers_else_the_bytes_else_the_names(
    http: Http, name: str, header: str | None, content: bytes, expected: str
) -> None:
    headers = {} if header is None else {"Content-Type": header}
    assert http.put(f"/files/{name}", content, headers=headers).json["content_type"] == expected
    assert http.get(f"/files/{name}").headers["content-type"] == expected


@pytest.mark.parametrize("bad", ["text", "a/b\x7f", "text/plain; ;;x", "/", "a/" + "b" * 300, "té/xt"])
def test_a_content_type_that_is_none_is_refused(http: Http, bad: str) -> None:
    answer = http.put("/files/a", b"x", headers={"Content-Type": bad})
    assert answer.status_code == 400
    assert answer.json["code"] == "INVALID_INPUT"


@pytest.mark.parametrize(
    "content_type",
    [
        *("text/html", "TEXT/HTML; charset=utf-8", "image/svg+xml", "application/xhtml+xml", "text/xml"),
        *("application/rss+xml", "application/mathml+xml", "multipart/x-mixed-replace", "message/rfc822"),
    ],
)
def test_whatever_a_browser_runs_is_served_in_a_sandbox(http: Http, content_type: str) -> None:
    http.put("/files/a", "<x/>", headers={"Content-Type": content_type})
    for headers in ({}, {"Range": "bytes=0-1"}):
        shown = http.get("/files/a", headers=headers).headers
        assert set(shown["content-security-policy"].split("; ")) >= SANDBOX
        assert shown["referrer-policy"] == "no-referrer"
        assert shown["x-content-type-options"] == "nosniff"
    assert set(http("HEAD", "/files/a").headers["content-security-policy"].split("; ")) >= SANDBOX


@pytest.mark.parametrize("content_type", ["text/plain", "image/png", "video/webm", "application/json", "a/b"])
def test_what_no_browser_runs_loads_nothing_but_itself_and_needs_no_sandbox(
    http: Http, content_type: str
) -> None:
    http.put("/files/a.txt", "x", headers={"Content-Type": content_type})
    for headers in ({}, {"Range": "bytes=0-0"}, {"If-None-Match": "*"}):
        policy = http.get("/files/a.txt", headers=headers).headers["content-security-policy"].split("; ")
        assert "sandbox" not in policy
        assert set(policy) >= {"default-src 'none'", "base-uri 'none'", "frame-ancestors 'self'"}


def test_viewers_of_documents_are_not_kept_from_their_work(http: Http) -> None:
    http.put("/files/a.pdf", b"%PDF-1.4", headers={"Content-Type": "application/pdf"})
    policy = http.get("/files/a.pdf").headers["content-security-policy"].split("; ")
    assert set(policy) >= {"script-src 'none'", "base-uri 'none'", "frame-ancestors 'self'"}
    assert not {"sandbox", "object-src 'none'", "default-src 'none'"} & set(policy)


def test_stored_pages_are_served_in_a_sandbox(http: Http, set_limits: Callable[..., None]) -> None:
    http.put("/files/a.html", b"<!doctype html><script>alert(1)</script>")
    assert set(http.get("/files/a.html").headers["content-security-policy"].split("; ")) >= SANDBOX
    http.put("/files/a.txt", b"x")
    set_limits(sandbox_active_content=False)
    assert "content-security-policy" not in http.get("/files/a.html").headers
    assert "default-src 'none'" in http.get("/files/a.txt").headers["content-security-policy"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", 'inline; filename="a.txt"'),
        ("a b+c@d-e_f.tar.gz", 'inline; filename="a b+c@d-e_f.tar.gz"'),
        ("läuft.txt", "inline; filename*=UTF-8''l%C3%A4uft.txt"),
        ('a";filename="b.exe', "inline; filename*=UTF-8''a%22%3Bfilename%3D%22b.exe"),
        ("a\\b", "inline; filename*=UTF-8''a%5Cb"),
        ("a;b", "inline; filename*=UTF-8''a%3Bb"),
        ("x" * 200, "inline; filename*=UTF-8''" + "x" * 200),
    ],
)
def test_the_server_says_what_a_file_is_called(http: Http, name: str, expected: str) -> None:
    path = "/files/below/" + quote(name)
    http.put(path, b"x")
    assert http.get(path).headers["content-disposition"] == expected
    assert "content-disposition" not in http.get("/files/below").headers


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("/files//a//./b", "/a/b"),
        ("/files/a%2Fb", "/a/b"),
        ("/files/u%CC%88", "/ü"),
        ("/files/a%2525", "/a%25"),
        ("/files/" + "n" * 255, "/" + "n" * 255),
    ],
)
def test_paths_are_decoded_once_and_normalized(http: Http, path: str, stored: str) -> None:
    answer = http.put(path, b"x")
    assert answer.status_code == 201
    assert answer.json["path"] == stored
    assert http.get("/files" + quote(stored)).content == b"x"


@pytest.mark.parametrize(
    "path", ["/files/a/../b", "/files/a%00b", "/files/a%0Ab", "/files/" + "n" * 256, "/files/..%2f.."]
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "PATCH"])
def test_a_bad_path_is_400_on_every_method(http: Http, method: str, path: str) -> None:
    answer = http(method, path)
    assert answer.status_code == 400
    if method != "HEAD":
        assert answer.json["code"] == "INVALID_PATH"


def test_a_path_over_4096_bytes_is_400(http: Http) -> None:
    assert http.put("/files/" + "/".join(["n" * 200] * 21), b"").status_code == 400


def test_a_path_of_unicode_travels_percent_encoded_in_headers(http: Http) -> None:
    http.put("/files/gr%C3%BC%C3%9Fe/a%20b", b"x")
    assert http.get("/files/gr%C3%BC%C3%9Fe/a%20b").headers["x-svc-path"] == "/gr%C3%BC%C3%9Fe/a%20b"


def test_a_file_where_a_directory_is_needed_is_409_and_so_is_the_reverse(http: Http) -> None:
    http.put("/files/a", b"x")
    below = http.put("/files/a/b/c", b"x")
    assert (below.status_code, below.json["code"]) == (409, "CONFLICT")
    http.put("/files/d/e", b"x")
    assert http.put("/files/d", b"x").status_code == 409
    assert http.put("/files/", b"x").status_code == 409


@pytest.mark.parametrize("server_limits", [Limits(file_body=10), Limits(file_body=10, json_body=5)])
def test_a_body_over_the_limit_is_413_and_nothing_is_stored(http: Http) -> None:
    answer = http.put("/files/a", b"x" * 11)
    assert (answer.status_code, answer.json["limit"]) == (413, 10)
    assert http.get("/files/a").status_code == 404
    assert http.put("/files/a", b"x" * 10).status_code == 201


def test_what_is_not_there_is_404(http: Http) -> None:
    for method in ("GET", "HEAD", "DELETE"):
        assert http(method, "/files/nowhere").status_code == 404
    answer = http.get("/files/nowhere").json
    assert (answer["code"], answer["path"]) == ("NOT_FOUND", "/nowhere")


def test_a_file_is_deleted(http: Http) -> None:
    http.put("/files/d/a", b"x")
    answer = http.delete("/files/d/a")
    assert answer.status_code == 200
    version = http.get("/files/").headers["x-svc-version"]
    assert answer.json == {"deleted": True, "path": "/d/a", "entry_type": 2, "version": version}
    assert http.get("/files/d/a").status_code == 404


def test_a_directory_needs_recursive_unless_it_is_empty(http: Http) -> None:
    http.fill("/d/a", "/d/e/f")
    assert http.delete("/files/d").status_code == 409
    answer = http.delete("/files/d", params={"recursive": "true"})
    assert (answer.status_code, answer.json["entry_type"]) == (200, 3)
    assert http.get("/files/d/e/f").status_code == 404
    http.post("/files/mkdir", {"path": "/empty"})
    assert http.delete("/files/empty").status_code == 200


def test_the_root_stays(http: Http) -> None:
    assert http.delete("/files/", params={"recursive": "true"}).status_code == 400
    assert http.get("/files").status_code == 200


class TestConditions:
    def test_if_none_match_star_only_creates(self, http: Http) -> None:
        only_new = {"If-None-Match": "*"}
        assert http.put("/files/a", b"1", headers=only_new).status_code == 201
        refused = http.put("/files/a", b"2", headers=only_new)
        assert (refused.status_code, refused.json["code"]) == (412, "PRECONDITION_FAILED")
        assert http.get("/files/a").content == b"1"

    def test_if_match_is_a_compare_and_swap(self, http: Http) -> None:
        etag = http.put("/files/a", b"1").headers["etag"]
        assert http.put("/files/a", b"2", headers={"If-Match": etag}).status_code == 200
        assert http.put("/files/a", b"3", headers={"If-Match": etag}).status_code == 412
        assert http.delete("/files/a", headers={"If-Match": etag}).status_code == 412
        assert http.put("/files/none", b"3", headers={"If-Match": "*"}).status_code == 412
        assert http.get("/files/a").content == b"2"
        current = http("HEAD", "/files/a").headers["etag"]
        assert http.delete("/files/a", headers={"If-Match": current}).status_code == 200

    def test_a_directory_is_deleted_only_if_it_is_still_the_same(self, http: Http) -> None:
        http.fill("/d/a")
        etag = http.get("/files/d").headers["etag"]
        http.fill("/d/b")
        options = {"params": {"recursive": "true"}, "headers": {"If-Match": etag}}
        assert http.delete("/files/d", **options).status_code == 412
        options["headers"] = {"If-Match": http.get("/files/d").headers["etag"]}
        assert http.delete("/files/d", **options).status_code == 200

    def test_a_reader_who_has_it_gets_304(self, http: Http) -> None:
        etag = http.put("/files/a", b"1").headers["etag"]
        modified = http.get("/files/a").headers["last-modified"]
        for headers in (
            {"If-None-Match": etag},
            {"If-None-Match": f'W/{etag}, "x"'},
            {"If-Modified-Since": modified},
        ):
            for method in ("GET", "HEAD"):
                answer = http(method, "/files/a", headers=headers)
                assert (answer.status_code, answer.content) == (304, b"")
                assert answer.headers["etag"] == etag
        assert http.get("/files/a", headers={"If-None-Match": '"other"'}).status_code == 200
        assert http.get("/files/a", headers={"If-Match": '"other"'}).status_code == 412

    def test_if_unmodified_since_guards_writes(self, http: Http) -> None:
        http.put("/files/a", b"1", headers={"X-Svc-Updated-At": "5000000"})
        old = {"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:01 GMT"}
        new = {"If-Unmodified-Since": "Thu, 01 Jan 1970 02:00:01 GMT"}
        assert http.put("/files/a", b"2", headers=old).status_code == 412
        assert http.put("/files/a", b"2", headers=new).status_code == 200

    def test_a_malformed_condition_is_never_ignored_by_a_write(self, http: Http) -> None:
        assert http.put("/files/a", b"1", headers={"If-Match": '"unclosed'}).status_code == 400


class TestRanges:
    CONTENT = bytes(range(256)) * 1200

    @pytest.mark.parametrize(
        ("field", "start", "end"),
        [
            ("bytes=0-0", 0, 1),
            ("bytes=100-", 100, 307200),
            ("bytes=-5", 307195, 307200),
            ("bytes=5-999999999", 5, 307200),
            ("bytes=65530-200000", 65530, 200001),
        ],
    )
    def test_a_range_is_206(self, http: Http, field: str, start: int, end: int) -> None:
        http.put("/files/a", self.CONTENT)
        answer = http.get("/files/a", headers={"Range": field})
        assert answer.status_code == 206
        assert answer.content == self.CONTENT[start:end]
        assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/307200"
        assert answer.headers["content-length"] == str(end - start)

    def test_several_ranges_come_as_multipart(self, http: Http) -> None:
        http.put("/files/a", self.CONTENT)
        answer = http.get("/files/a", headers={"Range": "bytes=0-1,100-101"})
        assert answer.status_code == 206
        assert answer.headers["content-type"].startswith("multipart/byteranges; boundary=")
        assert b"bytes 100-101/307200" in answer.content

    @pytest.mark.parametrize("field", ["bytes=307200-", "bytes=-0"])
    def test_a_range_outside_is_416(self, http: Http, field: str) -> None:
        http.put("/files/a", self.CONTENT)
        answer = http.get("/files/a", headers={"Range": field})
        assert (answer.status_code, answer.json["code"]) == (416, "RANGE_NOT_SATISFIABLE")
        assert answer.headers["content-range"] == "bytes */307200"

    def test_if_range_decides_between_part_and_whole(self, http: Http) -> None:
        etag = http.put("/files/a", self.CONTENT).headers["etag"]
        same = {"Range": "bytes=0-9", "If-Range": etag}
        other = {"Range": "bytes=0-9", "If-Range": '"other"'}
        assert http.get("/files/a", headers=same).status_code == 206
        assert http.get("/files/a", headers=other).status_code == 200

    def test_an_empty_file_has_no_range(self, http: Http) -> None:
        http.put("/files/a", b"")
        assert http.get("/files/a").content == b""
        assert http.get("/files/a", headers={"Range": "bytes=0-"}).status_code == 416


class TestVersions:
    def test_an_old_version_reads_as_it_was(self, http: Http) -> None:
        old = http.put("/files/a", b"1").json["version"]
        http.put("/files/a", b"2")
        http.delete("/files/a")
        answer = http.get("/engine/a", params={"version": old})
        assert (answer.content, answer.headers["x-svc-version"]) == (b"1", old)
        assert http.items("/files", params={"version": old}) == ["/a"]

    def test_an_unknown_version_is_404_and_a_malformed_one_400(self, http: Http) -> None:
        http.put("/files/a", b"1")
        assert http.get("/files/a", params={"version": "0" * 64}).status_code == 404
        assert http.get("/files/a", params={"version": "xyz"}).status_code == 400
        assert http.get("/files/a", params={"snapshot": "none"}).status_code == 404
        assert http.get("/files/a", params={"fork": "none"}).status_code == 404
        assert http.get("/files/a", params={"snapshot": "\x00"}).status_code == 400

    def test_a_snapshot_wins_over_a_version_and_that_over_a_fork(self, http: Http) -> None:
        one = http.put("/files/a", b"1").json["version"]
        two = http.put("/files/a", b"2").json["version"]
        http.put("/files/a", b"3")
        _set_ref(http, "snapshots/s", one)
        _set_ref(http, "forks/f", two)
        assert http.get("/files/a", params={"fork": "f"}).content == b"2"
        assert http.get("/files/a", params={"fork": "f", "version": one}).content == b"1"
        assert http.get("/files/a", params={"snapshot": "s", "version": two, "fork": "f"}).content == b"1"

    def test_a_write_to_a_fork_leaves_head_alone(self, http: Http) -> None:
        base = http.put("/files/a", b"1").json["version"]
        _set_ref(http, "forks/f", base)
        fork = {"params": {"fork": "f"}}
        answer = http.put("/files/a", b"forked", **fork)
        assert answer.status_code == 200
        assert http.get("/files/a").content == b"1"
        assert http.get("/files/a", **fork).content == b"forked"
        assert http.get("/files/a", **fork).headers["x-svc-version"] == answer.json["version"]
        assert http.delete("/files/a", **fork).status_code == 200
        assert http.get("/files/a", **fork).status_code == 404
        assert http.get("/files/a").content == b"1"

    def test_a_write_to_a_version_or_an_unknown_fork_is_refused(self, http: Http) -> None:
        version = http.put("/files/a", b"1").json["version"]
        assert http.put("/files/a", b"2", params={"version": version}).status_code == 400
        assert http.put("/files/a", b"2", params={"fork": "none"}).status_code == 404
        assert http.put("/files/a", b"2", params={"fork": ""}).status_code == 404


def test_a_file_may_be_named_like_a_route(http: Http) -> None:
    for name in ("mkdir", "copy", "batch", "fetch", "download", "restore"):
        assert http.put(f"/files/{name}", name.encode()).status_code == 201
        assert http.get(f"/files/{name}").content == name.encode()
        assert http("HEAD", f"/files/{name}").headers["x-svc-path"] == f"/{name}"
        assert http("PATCH", f"/files/{name}", json={"to": f"/{name}.moved"}).status_code == 200
        assert http.delete(f"/engine/{name}.moved").status_code == 200
    assert http.put("/files/deleted", b"x").status_code == 201
    assert http.get("/files/deleted").json["items"] != []
    assert http.get("/engine/deleted").content == b"x"
    assert http.delete("/files/deleted").status_code == 200


def test_a_method_that_nobody_serves_is_405(http: Http) -> None:
    answer = http("POST", "/files/some/path")
    assert (answer.status_code, answer.json["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert "PUT" in answer.headers["allow"]


def _set_ref(http: Http, name: str, root: str) -> None:
    with http.database.transaction() as transaction:
        transaction.set_ref(name, bytes.fromhex(root), expected=b"")


def test_a_file_that_is_put_again_is_looked_for_by_the_chunks_of_the_one_before(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Entry | None] = []
    store = Database.store

    def note(self: Database, *arguments: Any, like: Entry | None = None, **more: Any) -> Any:
        told.append(like)
        return store(self, *arguments, like=like, **more)

    monkeypatch.setattr(Database, "store", note)
    content = random.Random(1).randbytes(300_000)
    assert http.put("/files/a", content).status_code == 201
    before = http.database.at().get(("a",))
    assert http.put("/files/a", content + b"x").status_code == 200
    assert told == [None, before]
    assert http.get("/files/a").content == content + b"x"
