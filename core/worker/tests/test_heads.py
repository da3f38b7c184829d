"""Heads, without a connection: whatever comes is read in one way, or refused."""

from __future__ import annotations

import pytest
from corpus import CASES
from hypothesis import given
from hypothesis import strategies as st
from scripted import SETTINGS

from svc_worker.head import CHUNKED, HeadParser
from svc_worker.refusals import Refusal

HEADS = sorted({case.data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" for case in CASES if len(case.data) < 900})
SPICES = [
    b"\r",
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b"\0",
    b":",
    b",",
    b"\r\n\r\n",
    b"chunked",
    b"Content-Length: 5\r\n",
]


def parse(head: bytes):
    parser = HeadParser(SETTINGS, {})
    try:
        environ = parser.parse(head)
    except Refusal as refusal:
        return refusal
    return parser, environ


@given(st.sampled_from(HEADS), st.lists(st.tuples(st.integers(0, 900), st.sampled_from(SPICES)), max_size=4))
def test_a_spoilt_head_is_refused_or_still_has_one_framing(head: bytes, spoils) -> None:
    for place, spice in spoils:
        at = place % len(head)
        head = head[:at] + spice + head[at:]
    outcome = parse(head)
    if isinstance(outcome, Refusal):
        assert 400 <= outcome.status < 600
        return
    parser, environ = outcome
    assert not ("CONTENT_LENGTH" in environ and "HTTP_TRANSFER_ENCODING" in environ)
    assert (parser.length == CHUNKED) == ("HTTP_TRANSFER_ENCODING" in environ)
    assert environ["PATH_INFO"].startswith("/") or environ["PATH_INFO"] == "*"
    assert "\n" not in "".join(value for value in environ.values() if isinstance(value, str)).replace(
        environ["PATH_INFO"], ""
    )
    assert b"\r\n\r\n" not in head[:-4]


@given(st.binary(max_size=200))
def test_no_bytes_fail_otherwise_than_by_a_refusal(data: bytes) -> None:
    parse(data + b"\r\n\r\n")
    parse(b"GET / HTTP/1.1\r\nHost: x\r\n" + data + b"\r\n\r\n")


def test_a_parser_reads_one_head_after_another() -> None:
    parser = HeadParser(SETTINGS, {})
    for number in range(3):
        for fields, length in (
            (b"", 0),
            (b"Content-Length: 7\r\n", 7),
            (b"Transfer-Encoding: chunked\r\n", CHUNKED),
        ):
            environ = parser.parse(b"PUT /%d HTTP/1.1\r\nHost: x\r\n%b\r\n" % (number, fields))
            assert (environ["PATH_INFO"], parser.length) == (f"/{number}", length)
        with pytest.raises(Refusal):
            parser.parse(b"PUT / HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n")


@given(st.lists(st.sampled_from(HEADS), min_size=2, max_size=6), st.integers(0, 5))
def test_a_used_parser_reads_the_next_head_as_a_fresh_one_does(heads: list[bytes], at: int) -> None:
    used = HeadParser(SETTINGS, {})
    for head in (*heads, heads[at % len(heads)], heads[at % len(heads)]):
        outcome = parse(head)
        if isinstance(outcome, Refusal):
            with pytest.raises(Refusal) as caught:
                used.parse(head)
            assert (caught.value.status, caught.value.text) == (outcome.status, outcome.text)
            used = HeadParser(SETTINGS, {})
            continue
        environ = used.parse(head)
        fresh, expected = outcome
        assert environ == expected
        for name in ("length", "keep_alive", "expects_continue", "is_http_1_0"):
            assert getattr(used, name) == getattr(fresh, name), name
        if not used.keep_alive:
            used = HeadParser(SETTINGS, {})


def test_fields_that_come_again_count_as_they_did_and_others_do_not() -> None:
    parser = HeadParser(SETTINGS, {})
    usual = b"Host: a\r\nX-One: 1\r\n\r\n"
    for line, fields, found in (
        (b"GET /1 HTTP/1.1\r\n", usual, ("a", "1", True)),
        (b"GET /2 HTTP/1.1\r\n", usual, ("a", "1", True)),
        (b"GET /3 HTTP/1.0\r\n", usual, ("a", "1", False)),
        (b"GET http://b/4 HTTP/1.1\r\n", usual, ("b", "1", True)),
        (b"GET /5 HTTP/1.1\r\n", usual, ("a", "1", True)),
        (b"GET /6 HTTP/1.1\r\n", b"Host: c\r\n\r\n", ("c", None, True)),
        (b"GET /7 HTTP/1.1\r\n", usual.replace(b"1", b"2"), ("a", "2", True)),
    ):
        environ = parser.parse(line + fields)
        assert (environ["HTTP_HOST"], environ.get("HTTP_X_ONE"), parser.keep_alive) == found, line


def test_repeated_fields_are_joined_and_cookies_as_cookies_are() -> None:
    _, environ = parse(
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nx-a: 2 \r\nCookie: a=1\r\nCookie: b=2\r\n\r\n"
    )
    assert environ["HTTP_X_A"] == "1,2"
    assert environ["HTTP_COOKIE"] == "a=1; b=2"


def test_the_host_of_an_absolute_target_comes_before_the_field() -> None:
    _, environ = parse(b"GET https://right:81/a HTTP/1.1\r\nHost: wrong\r\n\r\n")
    assert environ["HTTP_HOST"] == "right:81"
    assert "svc.authority" not in environ


@pytest.mark.parametrize("name", [b"X_A", b"Content_Length", b"Transfer_Encoding"])
def test_a_name_with_an_underscore_passes_for_no_other(name: bytes) -> None:
    parser, environ = parse(b"GET / HTTP/1.1\r\nHost: x\r\n%b: 5\r\n\r\n" % name)
    assert parser.length == 0
    assert set(environ) & {"HTTP_X_A", "CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"} == set()
