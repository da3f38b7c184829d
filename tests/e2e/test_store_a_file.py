"""PUT /files: what is stored, what the answer says, and what is refused."""

from __future__ import annotations

import io
import os
import re
import time

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


def test_a_new_file_is_201_and_the_answer_describes_it(http: Client, area: str) -> None:
    before = int(time.time() * 1000) - 2000
    response = http.put_file(f"{area}/deep/down/a.txt", b"hello", {"Content-Type": "text/plain"})
    assert response.status == 201
    value = response.json()
    assert value["path"] == f"{area}/deep/down/a.txt"
    assert value["size"] == 5
    assert value["content_type"] == "text/plain"
    assert value["content_hash"] == blake3(b"hello").hexdigest()
    assert before < value["created_at"] <= value["updated_at"] < before + 60_000
    assert re.fullmatch(r"[0-9a-f]{64}", value["version"])


def test_parents_appear_by_themselves(http: Client, area: str) -> None:
    http.store(f"{area}/one/two/three.txt", b"3")
    assert http.names(area) == ["one"]
    assert http.names(f"{area}/one/two") == ["three.txt"]


def test_replacing_is_200_and_keeps_the_time_of_creation(http: Client, area: str) -> None:
    first = http.store(f"{area}/a.txt", b"one")
    second = http.put_file(f"{area}/a.txt", b"two!")
    assert second.status == 200
    value = second.json()
    assert value["created_at"] == first["created_at"]
    assert value["updated_at"] >= first["updated_at"]
    assert value["content_hash"] == blake3(b"two!").hexdigest()
    assert value["version"] != first["version"]
    assert http.read(f"{area}/a.txt") == b"two!"


@pytest.mark.parametrize("size", [0, 1, 4095, 65536, 65537, 262144, 1 << 20, (5 << 20) + 7])
def test_every_byte_comes_back_for_sizes_around_the_borders(http: Client, area: str, size: int) -> None:
    content = os.urandom(size)
    value = http.store(f"{area}/blob.bin", content)
    assert value["size"] == size
    assert value["content_hash"] == blake3(content).hexdigest()
    assert http.read(f"{area}/blob.bin") == content


def test_compressible_content_comes_back(http: Client, area: str) -> None:
    content = b"".join(b"line %d of a long log\n" % number for number in range(100_000))
    http.store(f"{area}/big.log", content)
    assert http.read(f"{area}/big.log") == content


@pytest.mark.parametrize("pieces", [[b"one"], [b"a" * 70_000, b"b", b"c" * 300_000], []])
def test_a_chunked_upload_is_stored_like_any_other(http: Client, area: str, pieces: list[bytes]) -> None:
    response = http.request(
        "PUT",
        files(f"{area}/c.bin"),
        iter(pieces),
        encode_chunked=True,
        headers={"Transfer-Encoding": "chunked"},
    )
    assert response.status == 201, response.body
    assert http.read(f"{area}/c.bin") == b"".join(pieces)


def test_a_file_object_can_be_streamed(http: Client, area: str) -> None:
    content = os.urandom(3 << 20)
    headers = {"Content-Length": str(len(content))}
    assert http.request("PUT", files(f"{area}/s.bin"), io.BytesIO(content), headers).status == 201
    assert http.read(f"{area}/s.bin") == content


@pytest.mark.parametrize(
    ("name", "content", "sent", "expected"),
    [
        ("a.dat", b"plain", "application/x-mine", "application/x-mine"),
        ("a.dat", b"x", "text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("image", PNG, None, "image/png"),
        ("wrong.txt", PNG, None, "image/png"),
        ("page.html", b"<p>hi</p>", None, "text/html"),
        ("data.json", b"{}", None, "application/json"),
        ("style.css", b"p {}", None, "text/css"),
        ("unknown", b"\x00\x01\x02", None, "application/octet-stream"),
    ],
)
def test_the_content_type_is_the_senders_or_a_guess_from_magic_then_from_the_name(
    http: Client, area: str, name: str, content: bytes, sent: str | None, expected: str
) -> None:
    value = http.store(f"{area}/{name}", content, {"Content-Type": sent} if sent else None)
    assert value["content_type"] == expected
    assert http.get(files(f"{area}/{name}"))["Content-Type"] == expected


def test_a_file_where_a_directory_is_needed_is_409(http: Client, area: str) -> None:
    http.store(f"{area}/file", b"I am a file")
    assert_error(http.put_file(f"{area}/file/below", b""), 409)
    assert_error(http.put_file(f"{area}/file/far/below", b""), 409)
    assert http.read(f"{area}/file") == b"I am a file"


def test_a_directory_where_a_file_is_needed_is_409(http: Client, area: str) -> None:
    http.store(f"{area}/dir/file", b"x")
    assert_error(http.put_file(f"{area}/dir", b"y"), 409)
    assert http.read(f"{area}/dir/file") == b"x"


def test_the_root_is_no_place_for_a_file(http: Client) -> None:
    for target in ("/files/", "/files/./", "/files//"):
        response = http.request("PUT", target, b"x")
        assert 400 <= response.status < 500, response.status
        assert_error(response, response.status)


def test_engine_is_the_same_resource(http: Client, area: str) -> None:
    assert http.request("PUT", f"/engine{area}/e.txt", b"by engine").status == 201
    assert http.read(f"{area}/e.txt") == b"by engine"
    assert http.get(f"/engine{area}/e.txt").body == b"by engine"
    assert http.get(f"/engine{area}").json()["items"][0]["name"] == "e.txt"
    assert http.head(f"/engine{area}/e.txt")["ETag"] == http.head(files(f"{area}/e.txt"))["ETag"]
    assert http.delete(f"/engine{area}/e.txt").status == 200
    assert_error(http.get(files(f"{area}/e.txt")), 404, "NOT_FOUND")


def test_the_same_content_twice_has_the_same_identity(http: Client, area: str) -> None:
    content = os.urandom(100_000)
    assert (
        http.store(f"{area}/1", content)["content_hash"] == http.store(f"{area}/2", content)["content_hash"]
    )


def test_a_write_to_an_unknown_fork_is_404_and_stores_nothing(http: Client, area: str) -> None:
    assert_error(http.put_file(f"{area}/f.txt", b"x", fork="no-such-fork"), 404, "NOT_FOUND")
    assert_error(http.get(files(f"{area}/f.txt")), 404)
