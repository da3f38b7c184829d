"""Header fields of answers: pairs and dictionaries come out alike, and what HTTP can't carry does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from svc_worker.bodies import LengthBody
from svc_worker.refusals import refusal_bytes
from svc_worker.responses import AnswerError, Response

LONG = {f"x-{number}": str(number) for number in range(30)}


def send(status: str, fields: Any, body: bytes = b"", *, is_head: bool = False) -> bytes:
    sent: list[bytes] = []
    stream = SimpleNamespace(send=sent.append, send_parts=sent.extend)
    owner = SimpleNamespace(
        stream=stream,
        settings=SimpleNamespace(keepalive_s=5.0, drain_bytes=1),
        server=SimpleNamespace(date="Date: now\r\n", is_serving=True),
        head_sent=False,
        keep_alive=True,
        is_http_1_0=False,
    )
    response = Response(owner, LengthBody(owner, 0, False), is_head)
    response.start(status, fields)
    response.write_only(body)
    response.finish()
    return b"".join(sent)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"a": "b"},
        {"content-length": "4", "etag": '"x"'},
        {"Date": "then", "content-length": "4"},
        {"x-name": "caf\xe9\t!", "content-length": "4"},
        {"connection": "close", "transfer-encoding": "chunked"},
        {"empty": "", "content-length": "4"},
        LONG,
    ],
)
@pytest.mark.parametrize(
    ("status", "is_head"), [("200 OK", False), ("200 OK", True), ("204 No Content", False)]
)
def test_a_dictionary_is_answered_as_its_pairs_are(
    fields: dict[str, str], status: str, is_head: bool
) -> None:
    for _ in range(2):  # the second time, its names are known
        expected = send(status, list(fields.items()), b"body", is_head=is_head)
        assert send(status, fields, b"body", is_head=is_head) == expected
    lines = expected.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 " + status.encode()
    for name, value in fields.items():
        if name not in ("connection", "transfer-encoding") and (name, status[:3]) != (
            "content-length",
            "204",
        ):
            assert f"{name}: {value}".encode("latin-1") in lines


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", "a\r\nb: c"),
        ("x", "a\nb"),
        ("x", "\0"),
        ("x", "\x7f"),
        ("x", "\u20ac"),
        ("x y", "a"),
        ("x\r\n", "a"),
    ]
    + [("content-length", value) for value in ("", "-1", "1 ", "\u0661", "1" * 19, "4x")],
)
def test_what_http_cannot_carry_is_the_applications_fault(name: str, value: str) -> None:
    fields = {"a": "b", name: value}
    for given in (fields, list(fields.items())):
        with pytest.raises(AnswerError):
            send("200 OK", given, b"body")


def test_a_refusal_is_taken_for_nothing_but_json() -> None:
    head = refusal_bytes(400, "The request line is no request line.", "INVALID_INPUT", "").partition(
        b"\r\n\r\n"
    )[0]
    assert b"\r\nContent-Type: application/json\r\n" in head
    assert b"\r\nX-Content-Type-Options: nosniff\r\n" in head
    assert b"\r\nContent-Security-Policy: default-src 'none'; " in head
