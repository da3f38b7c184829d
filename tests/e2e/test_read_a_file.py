"""GET and HEAD of files: headers, conditions, ranges, earlier versions."""

from __future__ import annotations

import email.utils
import os
import time
from email import message_from_bytes

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, Response, assert_error, files

CONTENT = b"0123456789abcdef"


@pytest.fixture
def target(http: Client, area: str) -> str:
    http.store(f"{area}/sixteen.txt", CONTENT, {"Content-Type": "text/plain"})
    return files(f"{area}/sixteen.txt")


def http_date(seconds: float) -> str:
    return email.utils.formatdate(seconds, usegmt=True)


def test_the_headers_of_a_file(http: Client, area: str, target: str) -> None:
    stored = http.put_file(f"{area}/sixteen.txt", CONTENT, {"Content-Type": "text/plain"}).json()
    response = http.get(target)
    assert response.status == 200
    assert response.body == CONTENT
    digest = blake3(CONTENT).hexdigest()
    expected = {
        "Content-Type": "text/plain",
        "Content-Length": "16",
        "Accept-Ranges": "bytes",
        "ETag": f'"{digest}"',
        "X-Svc-Entry-Type": "file",
        "X-Svc-Path": f"{area}/sixteen.txt",
        "X-Svc-Size": "16",
        "X-Svc-Created-At": str(stored["created_at"]),
        "X-Svc-Updated-At": str(stored["updated_at"]),
        "X-Svc-Content-Hash": digest,
    }
    assert {name: response.headers[name] for name in expected} == expected
    assert len(bytes.fromhex(response["X-Svc-Version"])) == 32
    modified = email.utils.parsedate_to_datetime(response["Last-Modified"]).timestamp()
    assert modified == stored["updated_at"] // 1000
    assert response["X-Request-Id"]
    assert "X-Svc-Symlink-Target" not in response


def test_head_is_get_without_the_body(http: Client, target: str) -> None:
    get, head = http.get(target), http.head(target)
    assert head.status == 200
    assert head.body == b""
    changing = {"date", "x-request-id"}
    names = {name.lower() for name in get.headers} - changing
    assert {name: head.headers[name] for name in names} == {name: get.headers[name] for name in names}


def test_what_does_not_exist_is_404_for_get_and_head(http: Client, area: str) -> None:
    assert_error(http.get(files(f"{area}/nothing")), 404, "NOT_FOUND")
    response = http.head(files(f"{area}/nothing"))
    assert (response.status, response.body) == (404, b"")


def test_below_a_file_there_is_nothing(http: Client, target: str) -> None:
    assert_error(http.get(target + "/below"), 404, "NOT_FOUND")


class TestConditions:
    def etag(self, http: Client, target: str) -> str:
        return http.head(target)["ETag"]

    @pytest.mark.parametrize("form", ["{0}", "W/{0}", '"other", {0}', "*", '"x",{0} , "y"'])
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_known_etag_is_304_without_a_body(
        self, http: Client, target: str, form: str, method: str
    ) -> None:
        etag = self.etag(http, target)
        response = http.request(method, target, None, {"If-None-Match": form.format(etag)})
        assert (response.status, response.body) == (304, b"")
        assert response["ETag"] == etag

    def test_another_etag_gives_the_file(self, http: Client, target: str) -> None:
        response = http.get(target, {"If-None-Match": '"0000"'})
        assert (response.status, response.body) == (200, CONTENT)

    def test_not_modified_since(self, http: Client, target: str) -> None:
        modified = http.head(target)["Last-Modified"]
        assert http.get(target, {"If-Modified-Since": modified}).status == 304
        assert http.get(target, {"If-Modified-Since": http_date(time.time() - 86_400)}).status == 200
        assert http.get(target, {"If-Modified-Since": "yesterday"}).status == 200

    def test_if_none_match_wins_over_if_modified_since(self, http: Client, target: str) -> None:
        modified = http.head(target)["Last-Modified"]
        headers = {"If-None-Match": '"other"', "If-Modified-Since": modified}
        assert http.get(target, headers).status == 200

    def test_if_match_on_a_read(self, http: Client, target: str) -> None:
        etag = self.etag(http, target)
        assert http.get(target, {"If-Match": etag}).status == 200
        assert http.get(target, {"If-Match": "*"}).status == 200
        assert_error(http.get(target, {"If-Match": '"other"'}), 412, "PRECONDITION_FAILED")
        assert_error(http.get(target, {"If-Match": f"W/{etag}"}), 412, "PRECONDITION_FAILED")

    def test_if_unmodified_since_on_a_read(self, http: Client, target: str) -> None:
        old = http_date(time.time() - 86_400)
        assert_error(http.get(target, {"If-Unmodified-Since": old}), 412, "PRECONDITION_FAILED")
        assert http.get(target, {"If-Unmodified-Since": http_date(time.time() + 60)}).status == 200

    def test_put_with_if_none_match_star_creates_only(self, http: Client, area: str, target: str) -> None:
        headers = {"If-None-Match": "*"}
        assert_error(http.request("PUT", target, b"new", headers), 412, "PRECONDITION_FAILED")
        assert http.get(target).body == CONTENT
        assert http.put_file(f"{area}/fresh", b"new", headers).status == 201

    def test_put_with_if_match_is_a_compare_and_swap(self, http: Client, area: str, target: str) -> None:
        etag = self.etag(http, target)
        assert http.request("PUT", target, b"second", {"If-Match": etag}).status == 200
        assert_error(http.request("PUT", target, b"third", {"If-Match": etag}), 412, "PRECONDITION_FAILED")
        assert http.get(target).body == b"second"
        for header in (etag, "*"):
            response = http.put_file(f"{area}/absent", b"x", {"If-Match": header})
            assert_error(response, 412, "PRECONDITION_FAILED")
        assert_error(http.get(files(f"{area}/absent")), 404)

    def test_delete_with_if_match_is_a_compare_and_swap(self, http: Client, target: str) -> None:
        etag = self.etag(http, target)
        assert_error(http.delete(target, {"If-Match": '"other"'}), 412, "PRECONDITION_FAILED")
        assert http.get(target).status == 200
        assert http.delete(target, {"If-Match": etag}).status == 200
        assert http.get(target).status == 404

    def test_patch_with_if_match_is_a_compare_and_swap(self, http: Client, area: str, target: str) -> None:
        etag = self.etag(http, target)
        body = {"to": f"{area}/moved.txt"}
        response = http.send_json("PATCH", target, body, {"If-Match": '"other"'})
        assert_error(response, 412, "PRECONDITION_FAILED")
        assert http.get(target).status == 200
        assert http.send_json("PATCH", target, body, {"If-Match": etag}).status == 200
        assert http.read(f"{area}/moved.txt") == CONTENT

    @pytest.mark.parametrize("value", ["", "garbage", '"unclosed', "W/", ",,,", '"a" "b"', "\xe9"])
    @pytest.mark.parametrize("name", ["If-Match", "If-None-Match", "If-Range", "If-Modified-Since"])
    def test_malformed_conditions_are_never_a_server_error(
        self, http: Client, target: str, name: str, value: str
    ) -> None:
        assert http.get(target, {name: value, "Range": "bytes=0-1"}).status < 500
        response = http.request("PUT", target, CONTENT, {name: value})
        assert response.status in (200, 400, 412)


class TestRanges:
    @pytest.mark.parametrize(
        ("header", "start", "end"),
        [
            ("bytes=0-0", 0, 0),
            ("bytes=0-4", 0, 4),
            ("bytes=5-", 5, 15),
            ("bytes=-3", 13, 15),
            ("bytes=-99", 0, 15),
            ("bytes=15-15", 15, 15),
            ("bytes=10-999999999999999999999", 10, 15),
            ("bytes=0-", 0, 15),
        ],
    )
    def test_one_range(self, http: Client, target: str, header: str, start: int, end: int) -> None:
        response = http.get(target, {"Range": header})
        assert response.status == 206
        assert response.body == CONTENT[start : end + 1]
        assert response["Content-Range"] == f"bytes {start}-{end}/16"
        assert response["Content-Length"] == str(end - start + 1)
        assert response["ETag"] == http.head(target)["ETag"]

    @pytest.mark.parametrize(
        "header", ["bytes=16-", "bytes=16-20", "bytes=99999999999999999999-", "bytes=-0"]
    )
    def test_no_byte_of_the_range_exists(self, http: Client, target: str, header: str) -> None:
        response = http.get(target, {"Range": header})
        assert_error(response, 416, "RANGE_NOT_SATISFIABLE")
        assert response["Content-Range"] == "bytes */16"

    @pytest.mark.parametrize(
        "header",
        [
            "bytes=5-2",
            "bytes=abc",
            "bytes=",
            "bytes",
            "items=0-1",
            "bytes=--1",
            "bytes=1-2-3",
            "bytes=0x1-2",
            "bytes=٣-",
            "",
        ],
    )
    def test_what_is_no_byte_range_is_ignored(self, http: Client, target: str, header: str) -> None:
        response = http.get(target, {"Range": header.encode().decode("latin-1")})
        assert (response.status, response.body) == (200, CONTENT)

    def test_several_ranges_come_as_multipart_or_whole(self, http: Client, target: str) -> None:
        response = http.get(target, {"Range": "bytes=0-1,4-5,-2"})
        assert response.status in (200, 206)
        if response.status == 200:
            assert response.body == CONTENT
            return
        assert response.headers.get_content_type() == "multipart/byteranges"
        head = b"Content-Type: " + response["Content-Type"].encode() + b"\r\n\r\n"
        parts = message_from_bytes(head + response.body).get_payload()
        assert [part.get_payload() for part in parts] == ["01", "45", "ef"]
        assert [part["Content-Range"] for part in parts] == [
            "bytes 0-1/16",
            "bytes 4-5/16",
            "bytes 14-15/16",
        ]

    def test_a_thousand_overlapping_ranges_do_not_multiply_the_work(self, http: Client, target: str) -> None:
        header = "bytes=" + ",".join(["0-"] * 1000)
        response = http.get(target, {"Range": header})
        assert response.status in (200, 206, 400, 416, 431)
        assert len(response.body) < 100_000

    def test_a_range_has_no_meaning_for_head(self, http: Client, target: str) -> None:
        response = http.head(target, {"Range": "bytes=0-4"})
        assert (response.status, response["Content-Length"]) == (200, "16")

    def test_an_empty_file_has_no_range(self, http: Client, area: str) -> None:
        http.store(f"{area}/empty")
        response = http.get(files(f"{area}/empty"), {"Range": "bytes=0-"})
        assert response.status in (200, 416)
        assert http.read(f"{area}/empty") == b""

    def test_ranges_of_a_large_file_cross_its_chunks(self, http: Client, area: str) -> None:
        content = os.urandom(2 << 20) + b"compressible " * 100_000
        http.store(f"{area}/large", content)
        size = len(content)
        for start, end in [
            (0, 0),
            (65_530, 65_545),
            (100_000, 1_900_000),
            (2_097_140, 2_097_170),
            (size - 1, size - 1),
            (1, size - 2),
        ]:
            response = http.get(files(f"{area}/large"), {"Range": f"bytes={start}-{end}"})
            assert response.status == 206
            assert response.body == content[start : end + 1]

    def test_if_range_with_the_current_etag_gives_the_part(self, http: Client, target: str) -> None:
        etag = http.head(target)["ETag"]
        response = http.get(target, {"Range": "bytes=2-3", "If-Range": etag})
        assert (response.status, response.body) == (206, b"23")

    @pytest.mark.parametrize("validator", ['"other"', "weak", "Thu, 01 Jan 1970 00:00:00 GMT"])
    def test_if_range_with_anything_else_gives_the_whole(
        self, http: Client, target: str, validator: str
    ) -> None:
        if validator == "weak":
            validator = "W/" + http.head(target)["ETag"]
        response = http.get(target, {"Range": "bytes=2-3", "If-Range": validator})
        assert (response.status, response.body) == (200, CONTENT)

    def test_a_condition_is_checked_before_the_range(self, http: Client, target: str) -> None:
        etag = http.head(target)["ETag"]
        assert http.get(target, {"Range": "bytes=2-3", "If-None-Match": etag}).status == 304
        assert http.get(target, {"Range": "bytes=2-3", "If-Match": '"other"'}).status == 412


class TestEarlierVersions:
    def test_every_version_that_a_write_named_stays_readable(self, http: Client, area: str) -> None:
        versions = [http.store(f"{area}/v.txt", b"content %d" % n)["version"] for n in range(5)]
        gone = http.delete(files(f"{area}/v.txt")).json()["version"]
        for number, version in enumerate(versions):
            assert http.read(f"{area}/v.txt", version=version) == b"content %d" % number
            assert http.get(f"/engine{area}/v.txt", version=version).body == b"content %d" % number
            assert http.names(area, version=version) == ["v.txt"]
        assert_error(http.get(files(f"{area}/v.txt"), version=gone), 404, "NOT_FOUND")
        assert_error(http.get(files(f"{area}/v.txt")), 404, "NOT_FOUND")

    def test_headers_and_ranges_work_at_a_version(self, http: Client, area: str) -> None:
        version = http.store(f"{area}/v.txt", b"the first one")["version"]
        http.store(f"{area}/v.txt", b"another")
        response = http.get(files(f"{area}/v.txt"), {"Range": "bytes=4-8"}, version=version)
        assert (response.status, response.body) == (206, b"first")
        assert response["ETag"] == f'"{blake3(b"the first one").hexdigest()}"'
        assert response["X-Svc-Version"] == version

    @pytest.mark.parametrize(
        ("version", "status"),
        [("zz", 400), ("12", 400), ("0" * 63, 400), ("g" * 64, 400), ("0" * 64, 404), ("ab" * 32, 404)],
    )
    def test_versions_that_are_none(self, http: Client, target: str, version: str, status: int) -> None:
        assert_error(http.get(target, version=version), status)

    def test_the_hash_of_a_subdirectory_or_a_file_is_no_version(self, http: Client, area: str) -> None:
        http.store(f"{area}/sub/a.txt", b"a")
        (item,) = http.listing(area)["items"]
        assert_error(http.get(files("/"), version=item["hash"]), 404, "NOT_FOUND")
        assert_error(http.get(files("/"), version=blake3(b"a").hexdigest()), 404, "NOT_FOUND")

    @pytest.mark.parametrize("parameter", ["snapshot", "fork"])
    def test_an_unknown_name_is_404(self, http: Client, target: str, parameter: str) -> None:
        assert_error(http.get(target, **{parameter: "no-such-name"}), 404, "NOT_FOUND")

    def test_a_snapshot_wins_over_a_version(self, http: Client, area: str) -> None:
        version = http.store(f"{area}/v.txt", b"x")["version"]
        response: Response = http.get(files(f"{area}/v.txt"), snapshot="no-such-name", version=version)
        assert_error(response, 404, "NOT_FOUND")

    def test_a_version_wins_over_a_fork(self, http: Client, area: str) -> None:
        version = http.store(f"{area}/v.txt", b"x")["version"]
        assert http.get(files(f"{area}/v.txt"), version=version, fork="no-such-name").status == 200
