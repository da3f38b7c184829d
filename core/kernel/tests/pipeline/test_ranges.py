"""Byte ranges follow RFC 9110, section 14."""

from __future__ import annotations

import pytest
from falcon.testing import TestClient
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import RangeNotSatisfiable
from svc.pipeline import ByteRange, MultipartRanges, parse_range


@pytest.mark.parametrize(
    ("value", "pieces"),
    [
        ("bytes=0-3", [(0, 4)]),
        ("bytes=5-", [(5, 5)]),
        ("bytes=-3", [(7, 3)]),
        ("bytes=-99", [(0, 10)]),
        ("bytes=9-99", [(9, 1)]),
        ("BYTES = 0-0", [(0, 1)]),
        ("bytes=0-1,4-5", [(0, 2), (4, 2)]),
        ("bytes=4-5,0-1", [(4, 2), (0, 2)]),
        ("bytes=0-4,3-7", [(0, 8)]),
        ("bytes=0-1,2-3", [(0, 4)]),
        ("bytes=0-1,,20-30", [(0, 2)]),
        ("bytes=0-" + "9" * 5000, [(0, 10)]),
        ("bytes=" + "0" * 50 + "3-3", [(3, 1)]),
    ],
)
def test_ranges_that_exist_are_given(value: str, pieces: list[tuple[int, int]]) -> None:
    assert parse_range(value, 10) == tuple(ByteRange(*piece) for piece in pieces)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=a-b",
        "bytes=3-1",
        "bytes=-",
        "bytes=1",
        "lines=1-2",
        "bytes=0-1,x",
        "bytes=--1",
        "bytes=" + ",".join("0-0" for _ in range(17)),
        "bytes=\u0661-",
    ],
)
def test_what_is_malformed_is_ignored(value: str) -> None:
    assert parse_range(value, 10) is None


@pytest.mark.parametrize(
    ("value", "size"), [("bytes=10-", 10), ("bytes=0-", 0), ("bytes=-0", 10), ("bytes=-5", 0)]
)
def test_what_does_not_exist_is_416(value: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable):
        parse_range(value, size)


@given(st.text(alphabet="bytes=0123456789-, \t*x", max_size=30), st.integers(0, 100))
def test_no_field_breaks_it(value: str, size: int) -> None:
    try:
        found = parse_range(value, size)
    except RangeNotSatisfiable:
        return
    for piece in found or ():
        assert 0 <= piece.start < piece.start + piece.length <= size


def test_a_range_is_answered_206(client: TestClient) -> None:
    answer = client.simulate_get("/things/a", headers={"Range": "bytes=2-4"})
    assert (answer.status_code, answer.content) == (206, b"234")
    assert answer.headers["content-range"] == "bytes 2-4/10"
    assert answer.headers["content-length"] == "3"


def test_an_impossible_range_says_how_much_there_is(client: TestClient) -> None:
    answer = client.simulate_get("/things/a", headers={"Range": "bytes=10-"})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == "bytes */10"
    assert answer.json["code"] == "RANGE_NOT_SATISFIABLE"


def test_several_ranges_come_as_multipart_of_the_declared_length(client: TestClient) -> None:
    answer = client.simulate_get("/things/a", headers={"Range": "bytes=0-1,5-6"})
    assert answer.status_code == 206
    kind, _, boundary = answer.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/byteranges"
    assert len(answer.content) == int(answer.headers["content-length"])
    parts = answer.content.split(f"--{boundary}".encode())
    assert b"Content-Range: bytes 0-1/10\r\n\r\n01\r\n" in parts[1]
    assert b"Content-Range: bytes 5-6/10\r\n\r\n56\r\n" in parts[2]
    assert parts[3] == b"--\r\n"


def test_a_head_ignores_ranges(client: TestClient) -> None:
    answer = client.simulate_head("/things/a", headers={"Range": "bytes=0-1"})
    assert (answer.status_code, answer.headers["content-length"]) == (200, "10")


@pytest.mark.parametrize(
    ("validator", "status"),
    [
        ('"abc"', 206),
        ("abc", 206),
        ('W/"abc"', 200),
        ('"old"', 200),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 206),
        ("Tue, 14 Nov 2023 22:13:21 GMT", 200),
        ('"open', 200),
    ],
)
def test_if_range_gives_the_part_only_of_the_same_content(
    client: TestClient, validator: str, status: int
) -> None:
    answer = client.simulate_get("/things/a", headers={"Range": "bytes=0-1", "If-Range": validator})
    assert answer.status_code == status


def test_the_length_of_a_multipart_is_exact() -> None:
    content = bytes(range(256))
    body = MultipartRanges((ByteRange(0, 7), ByteRange(100, 20)), 256, "image/png")
    joined = b"".join(body.pieces(lambda start, length: [content[start : start + length]]))
    assert len(joined) == body.length
