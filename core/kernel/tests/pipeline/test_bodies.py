"""Request bodies: bounded, counted, never past what was sent."""

from __future__ import annotations

import io
from typing import Annotated, Any

import msgspec
import pytest
from falcon.testing import TestClient, create_req
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import InvalidInput, PayloadTooLarge, RequestTimeout
from svc.pipeline.bodies import BodyStream
from svc.pipeline.examples import json_command


class Names(msgspec.Struct):
    names: list[str]


class Chunks:
    """A server's input that gives pieces and errors as they are listed."""

    def __init__(self, *steps: bytes | Exception) -> None:
        self.steps = list(steps)
        self.failed = False

    def read(self, size: int) -> bytes:
        step = self.steps.pop(0) if self.steps else b""
        if isinstance(step, Exception):
            raise step
        return step


def source(raw: Any, **environ: str) -> BodyStream:
    return BodyStream({"wsgi.input": raw, **environ}, None)


def test_a_body_is_read_to_its_declared_end_and_not_beyond() -> None:
    raw = io.BytesIO(b"helloNEXT")
    stream = source(raw, CONTENT_LENGTH="5").limited_to(10)
    assert stream.read(-1) == b"hello"
    assert stream.read(3) == b""
    assert raw.read() == b"NEXT"


def test_no_length_and_no_chunks_mean_no_body() -> None:
    raw = io.BytesIO(b"NEXT")
    assert source(raw).limited_to(10).read(-1) == b""
    assert raw.read() == b"NEXT"


def test_a_declared_length_over_the_limit_is_refused_before_reading() -> None:
    raw = io.BytesIO(b"x" * 11)
    with pytest.raises(PayloadTooLarge) as caught:
        source(raw, CONTENT_LENGTH="11").limited_to(10)
    assert caught.value.details == {"limit": 10}
    assert raw.tell() == 0


def test_a_chunked_body_is_counted() -> None:
    stream = source(Chunks(b"12345", b"67890", b"1"), HTTP_TRANSFER_ENCODING="chunked").limited_to(10)
    assert stream.read(5) + stream.read(5) == b"1234567890"
    with pytest.raises(PayloadTooLarge):
        stream.read(5)


def test_a_chunked_body_of_just_the_limit_is_taken() -> None:
    stream = source(Chunks(b"12345", b"67890"), HTTP_TRANSFER_ENCODING="chunked").limited_to(10)
    assert stream.read(-1) == b"1234567890"


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (Chunks(b"abc"), InvalidInput),
        (Chunks(b"abc", ValueError("bad chunk")), InvalidInput),
        (Chunks(b"abc", ConnectionResetError()), InvalidInput),
        (Chunks(b"abc", TimeoutError()), RequestTimeout),
    ],
)
def test_a_body_that_breaks_off_is_an_error_and_spoils_the_connection(
    raw: Chunks, error: type[Exception]
) -> None:
    body = source(raw, CONTENT_LENGTH="10")
    with pytest.raises(error):
        body.limited_to(10).read(-1)
    assert body.prevents_reuse
    body.abandon()
    assert raw.failed


@pytest.mark.parametrize("length", ["x", "-1", "1.5", "\u0661", "9" * 19])
def test_a_malformed_length_is_400(length: str) -> None:
    with pytest.raises(InvalidInput):
        source(Chunks(), CONTENT_LENGTH=length).limited_to(10)


def test_a_small_rest_is_drained_and_a_large_one_gives_up_the_connection() -> None:
    small = source(io.BytesIO(b"x" * 1000), CONTENT_LENGTH="1000")
    assert not small.prevents_reuse
    assert small.drain()
    assert source(io.BytesIO(), CONTENT_LENGTH=str(2 * 1048576)).prevents_reuse
    assert source(io.BytesIO(), HTTP_TRANSFER_ENCODING="chunked").prevents_reuse


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=10), st.integers(1, 50))
def test_any_pieces_give_the_same_bytes(pieces: list[bytes], size: int) -> None:
    whole = b"".join(pieces)
    stream = source(io.BytesIO(whole), CONTENT_LENGTH=str(len(whole))).limited_to(None)
    assert b"".join(iter(lambda: stream.read(size), b"")) == whole


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"names": ["a"]}', "application/json", 200),
        (b'{"names": ["a"]}', "application/json; charset=UTF-8", 200),
        (b'{"names": ["a"]}', "application/vnd.x+json", 200),
        (b'{"names": ["a"]}', None, 200),
        (b'{"names": ["a"]}', "text/plain", 415),
        (b'{"names": ["a"]}', "application/json; charset=latin-1", 415),
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"names": "a"}', "application/json", 400),
        (b'{"names": [1]}', "application/json", 400),
        (b'{"names": ["\\ud800"]}', "application/json", 400),
        (b"[" * 999, "application/json", 400),
        (b'{"names": [' + b'"a",' * 400 + b'"a"]}', "application/json", 413),
    ],
)
def test_a_json_body_is_checked(
    client: TestClient, body: bytes, content_type: str | None, status: int
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = client.simulate_post("/things/query", body=body, headers=headers)
    assert answer.status_code == status, answer.text


def test_a_wrong_member_is_named(client: TestClient) -> None:
    answer = client.simulate_post("/things/query", json={"names": ["a", 5]})
    assert answer.json["field"] == "names[1]"


def test_too_much_is_413_with_the_limit(client: TestClient) -> None:
    assert client.simulate_put("/things/a", body=b"x" * 100).status_code == 201
    answer = client.simulate_put("/things/a", body=b"x" * 101)
    assert (answer.status_code, answer.json["limit"]) == (413, 100)


def test_a_form_is_answered_with_the_command_that_would_have_worked(client: TestClient) -> None:
    answer = client.simulate_post(
        "/things/query",
        body='{"names": ["a"]}',
        headers={"Content-Type": "application/x-www-form-urlencoded", "Host": "files.example:6830"},
        params={"token": "secret"},
    )
    assert answer.status_code == 415
    command = """curl --json '{"names": ["..."]}' http://files.example:6830/things/query"""
    assert answer.json["error"].endswith(f"For example: {command}")
    assert "secret" not in answer.text


@pytest.mark.parametrize("host", ["x'; rm -rf", "a b", "x/y", "a\u2028b", "$(id)", "`id`"])
def test_that_command_repeats_no_host_that_a_shell_would_read(client: TestClient, host: str) -> None:
    answer = client.simulate_post(
        "/things/query", body="{}", headers={"Content-Type": "text/plain"}, extras={"HTTP_HOST": host}
    )
    assert answer.json["error"].endswith("http://HOST/things/query")


class Nested(msgspec.Struct, tag_field="op", tag="put"):
    path: str
    sizes: list[int]
    flag: bool
    more: dict[str, str]
    note: str | None = None


class Bounded(msgspec.Struct):
    items: Annotated[list[Nested], msgspec.Meta(min_length=1)]


@pytest.mark.parametrize("form", [Bounded, Names, dict[str, Any], Any, list[str]])
def test_the_example_has_the_form_that_the_route_takes(form: Any) -> None:
    req = create_req(method="PUT", path="/x", headers={"Host": "h"})
    req.uri_template = "/things/{name}/{path:path}"
    command = json_command(req, form)
    prefix, _, rest = command.partition("'")
    body, _, url = rest.rpartition("'")
    assert (prefix, url) == ("curl -X PUT --json ", " http://h/things/NAME/PATH")
    msgspec.json.decode(body, type=form)
