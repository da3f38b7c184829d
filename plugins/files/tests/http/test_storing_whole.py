"""A PUT stores the whole of what was meant, or nothing: parts, forms, codings and digests."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from svc_testing import Server, start_server

CONTENT = b"the whole content\n"
PAGE = gzip.compress(b"<p>hello</p>", mtime=0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("whole") / "x.svcdb"
    with start_server(path, plugins=("files",)) as running:
        yield running


def put(server: Server, path: str, body: bytes = CONTENT, **headers: str) -> tuple[int, dict[str, str]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = server.request("PUT", path, body=body, headers=named)
    return answer.status, answer.json()


def post(server: Server, path: str, value: object) -> int:
    headers = {"Content-Type": "application/json"}
    return server.request("POST", path, body=json.dumps(value).encode(), headers=headers).status


def encoded(algorithm: str, content: bytes) -> str:
    return base64.b64encode(hashlib.new(algorithm, content).digest()).decode()


def raw(server: Server, *lines: str) -> bytes:
    """The status line that the server answers to a head without a body."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port or 80), timeout=30) as connection:
        head = "\r\n".join((*lines, "Host: localhost", "Connection: close", "", ""))
        connection.sendall(head.encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_an_upload_that_curl_takes_up_in_the_middle_does_not_replace_the_file(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "r.bin").write_bytes(CONTENT)
    put(server, "/files/part")
    command = ["curl", "-sS", "-C", "5", "-T", str(tmp_path / "r.bin"), f"{server.url}/files/part"]
    answer = json.loads(subprocess.run(command, check=True, timeout=60, capture_output=True).stdout)
    assert (answer["code"], answer["field"]) == ("INVALID_INPUT", "Content-Range")
    assert server.get("/files/part").body == CONTENT


def test_a_merge_patch_or_a_chunk_is_no_part_either(server: Server) -> None:
    put(server, "/files/part.json", b'{"a": 1}')
    headers = {"Content-Type": "application/merge-patch+json", "Content-Range": "bytes 0-7/20"}
    assert server.request("PATCH", "/files/part.json", body=b'{"b": 2}', headers=headers).status == 400
    assert json.loads(server.get("/files/part.json").body) == {"a": 1}


def test_a_form_is_refused_with_the_command_that_sends_a_file(server: Server) -> None:
    put(server, "/files/form")
    status, answer = put(server, "/files/form", b"--b\r\n", Content_Type="multipart/form-data; boundary=b")
    assert (status, answer["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert f"curl -T FILE {server.url}/files/PATH" in answer["error"]
    assert server.get("/files/form").body == CONTENT


def test_a_put_without_any_length_is_no_empty_file(server: Server) -> None:
    put(server, "/files/lengthless")
    for path in ("/files/lengthless", "/engine/lengthless"):
        assert raw(server, f"PUT {path} HTTP/1.1").startswith(b"HTTP/1.1 411 ")
    assert server.get("/files/lengthless").body == CONTENT
    assert raw(server, "PUT /files/lengthless HTTP/1.1", "Content-Length: 0").startswith(b"HTTP/1.1 200 ")
    assert server.get("/files/lengthless").body == b""


def test_a_path_that_ends_with_a_slash_names_a_directory(server: Server) -> None:
    for path in ("/files/slash/", "/engine/slash/", "/files/slash/%2F", "/files/slash/."):
        status, answer = put(server, path)
        assert (status, answer["code"]) == (400, "INVALID_PATH"), path
        assert "/files/mkdir" in answer["error"]
    headers = {"Content-Type": "application/merge-patch+json"}
    assert server.request("PATCH", "/files/slash/", body=b"{}", headers=headers).status == 400
    batch = {"operations": [{"op": "put", "path": "/slash/", "content": "x"}]}
    assert post(server, "/files/batch", batch) == 400
    commit = {"files": [{"path": "/slash/", "chunk_hashes": []}]}
    assert post(server, "/blobs/commit", commit) == 400
    assert server.get("/files/slash").status == 404


def test_a_content_encoding_is_kept_and_given_back(server: Server) -> None:
    status, stored = put(server, "/files/page.html", PAGE, Content_Type="text/html", Content_Encoding="GZIP")
    assert (status, stored["content_type"]) == (201, "text/html; content-encoding=gzip")
    assert post(server, "/files/copy", {"paths": ["/page.html"], "destination": "/copies"}) == 200
    for path in ("/files/page.html", "/files/copies/page.html"):
        for method in ("GET", "HEAD"):
            answer = server.request(method, path)
            assert answer.headers["content-type"] == "text/html"
            assert answer.headers["content-encoding"] == "gzip"
            assert answer.headers["x-svc-content-encoding"] == "gzip"
            assert "sandbox" in answer.headers["content-security-policy"]
        assert server.get(path).body == PAGE
    part = server.request("GET", "/files/page.html", headers={"Range": "bytes=0-3"})
    assert (part.status, part.body, part.headers["content-encoding"]) == (206, PAGE[:4], "gzip")


def test_what_is_stored_without_a_coding_or_in_none_has_none(server: Server) -> None:
    put(server, "/files/recoded", PAGE, Content_Type="text/html", Content_Encoding="gzip")
    status, stored = put(
        server, "/files/recoded", b"<p>", Content_Type="text/html", Content_Encoding="identity"
    )
    assert (status, stored["content_type"]) == (200, "text/html")
    assert "content-encoding" not in server.get("/files/recoded").headers


def test_a_coding_without_a_type_and_several_codings_are_kept_too(server: Server) -> None:
    _, stored = put(server, "/files/a.css", PAGE, Content_Encoding="x-gzip, br")
    assert stored["content_type"] == 'text/css; content-encoding="x-gzip, br"'
    assert server.get("/files/a.css").headers["content-encoding"] == "x-gzip, br"


@pytest.mark.parametrize("bad", ["gzip;q=1", "g zip", ",", "x" * 300])
def test_a_coding_that_is_none_is_refused(server: Server, bad: str) -> None:
    status, answer = put(server, "/files/coding", Content_Encoding=bad)
    assert (status, answer["field"]) == (400, "Content-Encoding")
    assert server.get("/files/coding").status == 404


def test_a_json_body_in_a_coding_is_refused_as_such(server: Server) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = server.request("POST", "/files/mkdir", body=gzip.compress(b'{"path": "/m"}'), headers=headers)
    assert answer.status == 415


@pytest.mark.parametrize("size", [0, 18, 300_000])
@pytest.mark.parametrize(
    ("name", "form", "algorithm"),
    [
        ("Content-MD5", "{}", "md5"),
        ("Content-Digest", "sha-256=:{}:", "sha256"),
        ("Repr-Digest", "sha-512=:{}:", "sha512"),
    ],
)
def test_a_digest_that_was_sent_is_checked(
    server: Server, name: str, form: str, algorithm: str, size: int
) -> None:
    path, content = f"/files/digests/{name}-{size}", b"x" * size
    status, answer = put(server, path, content, **{name: form.format(encoded(algorithm, b"other"))})
    assert (status, answer["code"], answer["field"]) == (400, "INVALID_INPUT", name)
    assert server.get(path).status == 404
    assert put(server, path, content, **{name: form.format(encoded(algorithm, content))})[0] == 201


def test_each_digest_of_a_field_is_checked_and_unknown_ones_are_not(server: Server) -> None:
    good, bad = encoded("sha256", CONTENT), encoded("sha512", b"other")
    both = f"sha-256=:{good}:, sha-512=:{bad}:"
    assert put(server, "/files/several", CONTENT, Content_Digest=both)[0] == 400
    unknown = f"crc32c=:AAAAAA==:,sha-256=:{good}:"
    assert put(server, "/files/several", CONTENT, Content_Digest=unknown)[0] == 201


@pytest.mark.parametrize(
    ("name", "value"),
    [("Content-MD5", "rubbish"), ("Content-Digest", "sha-256=rubbish"), ("Repr-Digest", "sha-256=:AAAA:")],
)
def test_a_malformed_digest_is_refused(server: Server, name: str, value: str) -> None:
    assert put(server, "/files/malformed", CONTENT, **{name: value})[0] == 400
    assert server.get("/files/malformed").status == 404


def test_digests_count_for_every_route_that_takes_a_body(server: Server) -> None:
    headers = {"Content-Type": "application/json", "Content-MD5": encoded("md5", b"other")}
    body = json.dumps({"path": "/made"}).encode()
    assert server.request("POST", "/files/mkdir", body=body, headers=headers).status == 400
    assert server.get("/files/made").status == 404
