"""Bodies of requests, as applications read them."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Owner
from wire import Client

from svc_worker.bodies import PIECE_BYTES, ChunkedBody, LengthBody, RequestBody
from svc_worker.refusals import BodyBroken


def cut(data: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(cuts)]


contents = st.binary(max_size=400)
places = st.lists(st.integers(0, 2000), max_size=12)
steps = st.lists(st.tuples(st.sampled_from(["read", "read1", "readinto", "readline"]), st.integers(1, 90)))


def consume(body: RequestBody, plan: list[tuple[str, int]]) -> bytes:
    found = b""
    for call, size in plan:
        if call == "readinto":
            buffer = bytearray(size)
            found += buffer[: body.readinto(buffer)]
        else:
            piece = getattr(body, call)(size)
            assert len(piece) <= size
            found += piece
    return found + body.read()


@given(contents, places, steps)
def test_a_body_of_a_length_is_what_was_sent_however_it_is_cut_and_read(content, cuts, plan) -> None:
    owner = Owner(cut(content + b"NEXT", cuts))
    body = LengthBody(owner, len(content), False) if content else None
    if body is None:
        return
    assert consume(body, plan) == content
    assert body.is_finished
    rest = owner.stream.buffered
    while piece := owner.stream.receive(100, 0):
        rest += piece
    assert rest == b"NEXT"


@given(st.lists(st.binary(min_size=1, max_size=90), max_size=8), places, steps)
def test_chunks_are_what_was_sent_however_they_are_cut_and_read(chunks, cuts, plan) -> None:
    wire = b"".join(b"%x;e=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nT: 1\r\n\r\nNEXT"
    owner = Owner(cut(wire, cuts))
    body = ChunkedBody(owner, False)
    assert consume(body, plan) == b"".join(chunks)
    assert body.is_finished
    rest = owner.stream.buffered
    while piece := owner.stream.receive(100, 0):
        rest += piece
    assert rest == b"NEXT"


@given(st.binary(max_size=60), places)
def test_no_bytes_make_the_decoder_of_chunks_fail_otherwise_than_by_refusing(data, cuts) -> None:
    body = ChunkedBody(Owner(cut(data, cuts)), False)
    try:
        body.read()
    except BodyBroken:
        assert body.flaw is not None
        with pytest.raises(BodyBroken):
            body.read()


def test_extensions_may_not_outweigh_what_they_extend() -> None:
    wire = b"".join(b"1;" + b"a" * 1000 + b"\r\nx\r\n" for _ in range(100)) + b"0\r\n\r\n"
    with pytest.raises(BodyBroken):
        ChunkedBody(Owner([wire]), False).read()


def test_trailers_are_bounded() -> None:
    wire = b"0\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(50)) + b"\r\n"
    with pytest.raises(BodyBroken):
        ChunkedBody(Owner([wire]), False).read()


def test_lines_are_read_as_from_a_file(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/lines", "POST", body=b"one\ntwothree\nfour\n\nfive")
        assert answer.json == ["one\n", "two", "th", "ree\n", "four\n", "\n", "five"]


@pytest.mark.parametrize("size", [1, 1000, 65536, 262144, 10_000_000])
def test_read_gives_whole_sizes(server, size: int) -> None:
    count = 50_000 if size == 1 else 3_000_001
    with Client(server.address) as client:
        answer = client.ask(f"/reads?{size}", "PUT", body=bytes(count))
        assert answer.json == {"size": count, "calls": -(-count // size)}
        assert client.ask("/").status == 200


def test_pieces_are_views_of_one_buffer(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/pieces", "PUT", body=bytes(5_000_000))
        assert answer.json["size"] == 5_000_000
        assert answer.json["largest"] <= PIECE_BYTES


def test_pieces_of_a_body_in_chunks(server) -> None:
    chunk = b"%x\r\n" % 100_000 + bytes(100_000) + b"\r\n"
    with Client(server.address) as client:
        client.send(b"PUT /pieces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            client.send(chunk)
        client.send(b"0\r\n\r\n")
        answer = client.answer()
        assert answer is not None
        assert answer.json["size"] == 2_000_000


def test_100_continue_comes_when_the_body_is_wanted_and_once(server) -> None:
    with Client(server.address) as client:
        client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
        first = client.answer()
        assert first is not None
        assert first.status == 100
        client.send(b"01234")
        client.send(b"56789")
        answer = client.answer()
        assert answer is not None
        assert answer.json["body"] == "0123456789"
        assert client.ask("/").status == 200


def test_100_continue_is_not_said_to_http_1_0(server) -> None:
    with Client(server.address) as client:
        client.send(b"PUT / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nok")
        answer = client.answer()
        assert answer is not None
        assert (answer.status, answer.json["body"]) == (200, "ok")


def test_a_small_body_that_nobody_reads_is_dropped_and_the_connection_goes_on(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/unread", "PUT", body=bytes(500_000))
        assert answer.get("connection") is None
        assert client.ask("/").status == 200


def test_a_large_body_that_nobody_reads_ends_the_connection_but_not_the_answer(server) -> None:
    with Client(server.address) as client:
        client.send(b"PUT /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + bytes(3_000_000))
        answer = client.answer()
        assert answer is not None
        assert (answer.status, answer.get("connection"), answer.body) == (200, "close", b"unread")
        assert client.is_at_end()


@pytest.mark.parametrize("target", ["/", "/pieces", "/lines", "/reads?1000"])
@pytest.mark.parametrize(
    "head_and_body",
    [b"Content-Length: 1000\r\n\r\nshort", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"],
)
def test_a_client_that_stops_in_its_body_gets_400_and_no_traceback(server, target, head_and_body) -> None:
    before = server.log.count("Traceback")
    with Client(server.address) as client:
        client.send(f"POST {target} HTTP/1.1\r\nHost: x\r\n".encode() + head_and_body)
        client.socket.shutdown(1)
        answer = client.answer()
        assert answer is not None
        assert answer.status == 400
    assert server.log.count("Traceback") == before


@pytest.mark.parametrize(
    ("head_and_body", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nshort", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nlate", 408),
    ],
)
def test_a_request_that_broke_off_is_freed_at_once_and_not_by_the_collector(
    launch, head_and_body: bytes, status: int
) -> None:
    server = launch(SVC_BODY_TIMEOUT="1")

    def connections() -> int:
        with Client(server.address) as client:
            return client.ask("/count-connections").json

    assert connections() == 1
    for _ in range(3):
        with Client(server.address) as client:
            client.send(head_and_body)
            if status == 400:
                client.socket.shutdown(1)
            answer = client.answer()
            assert answer is not None
            assert answer.status == status
    deadline = time.monotonic() + 10
    while connections() > 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
