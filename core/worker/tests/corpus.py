"""Requests, good and bad, with what RFC 9110 and RFC 9112 want to be done about them.

Data only: the tests run it against the worker (whole, byte by byte, in pieces) and against the stock worker.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """One exchange.

    Attributes:
        name: unique; a sentence in few words.
        data: what the client sends on a new connection.
        statuses: of the answers, in order.
        closes: whether the server closes the connection behind them.
        rule: where it stands; sections are of RFC 9112 unless another is named.
        echo: members that the first answer of the application must have.
        head_request: whether the first request is a HEAD.
    """

    name: str
    data: bytes
    statuses: tuple[int, ...]
    closes: bool
    rule: str
    echo: tuple[tuple[str, str], ...] = ()
    head_request: bool = False


def _get(*fields: str, target: str = "/a", version: str = "HTTP/1.1", method: str = "GET") -> bytes:
    return "\r\n".join((f"{method} {target} {version}", *fields, "", "")).encode("latin-1")


def _post(*fields: str, body: bytes = b"", target: str = "/a") -> bytes:
    return _get("Host: x", *fields, target=target, method="POST") + body


def _chunked(body: bytes, *fields: str) -> bytes:
    return _post("Transfer-Encoding: chunked", *fields, body=body)


def _good(name: str, data: bytes, rule: str, closes: bool = False, **echo: str) -> Case:
    return Case(name, data, (200,), closes, rule, tuple(echo.items()))


def _bad(name: str, data: bytes, rule: str, status: int = 400) -> Case:
    return Case(name, data, (status,), True, rule)


_LINES = (
    _good("plain GET", _get("Host: x"), "3", method="GET", path="/a"),
    _good("empty lines before the request", b"\r\n\r\n" + _get("Host: x"), "2.2"),
    _good("a method of nobody's", _get("Host: x", method="BREW"), "3.1", method="BREW"),
    _good("query", _get("Host: x", target="/a?b=c?d"), "3.2.1", path="/a", query="b=c?d"),
    _good("percent-encoding is decoded once", _get("Host: x", target="/%2541%2F"), "3.2.1", path="/%41/"),
    _good(
        "RAW_URI is as it was sent", _get("Host: x", target="/%61?%61"), "3.2.1", raw="/%61?%61", path="/a"
    ),
    _bad("bytes over 127 in the target", _get("Host: x", target="/\xc3\xa9"), "3.2"),
    _good("two slashes are no host", _get("Host: x", target="//evil/a"), "3.2.1", path="//evil/a"),
    _good("absolute target", _get("Host: x", target="http://y/b?c"), "3.2.2", path="/b", query="c"),
    _good("absolute target without a path", _get("Host: x", target="http://y"), "3.2.2", path="/"),
    _good("asterisk", _get("Host: x", target="*", method="OPTIONS"), "3.2.4", path="*"),
    _good("a later minor version", _get("Host: x", version="HTTP/1.9"), "2.3"),
    _bad("asterisk for GET", _get("Host: x", target="*"), "3.2.4"),
    _bad("target without a slash", _get("Host: x", target="a"), "3.2.1"),
    _bad("target of another scheme", _get("Host: x", target="ftp://y/"), "3.2.2"),
    _bad("target with user and password", _get("Host: x", target="http://a:b@y/"), "RFC 9110, 4.2.4"),
    _bad("fragment in the target", _get("Host: x", target="/a#b"), "3.2"),
    _bad("NUL in the target", _get("Host: x", target="/\0"), "3.2"),
    _bad("tab in the target", _get("Host: x", target="/a\tb"), "3.2"),
    _bad("two spaces in the request line", b"GET  /a HTTP/1.1\r\nHost: x\r\n\r\n", "3"),
    _bad("a space before the method", b" GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "3"),
    _bad("a space after the version", b"GET /a HTTP/1.1 \r\nHost: x\r\n\r\n", "3"),
    _bad("no version", b"GET /a\r\nHost: x\r\n\r\n", "3"),
    _bad("no target", b"GET HTTP/1.1\r\nHost: x\r\n\r\n", "3"),
    _bad("a character that no method has", _get("Host: x", method="GE(T"), "3.1"),
    _bad("lower case version", _get("Host: x", version="http/1.1"), "2.3"),
    _bad("version 2.0", _get("Host: x", version="HTTP/2.0"), "2.3", 505),
    _bad("version 0.9", _get("Host: x", version="HTTP/0.9"), "2.3", 505),
    _bad("version with two digits", _get("Host: x", version="HTTP/1.10"), "2.3", 505),
    _bad("preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "2.3", 505),
    _bad("CONNECT", _get("Host: x", target="x:80", method="CONNECT"), "RFC 9110, 9.3.6", 501),
    _bad("a method without end", _get("Host: x", method="A" * 40), "3", 501),
    _bad("TLS on a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(90), "3"),
    _bad("a line that ends in a bare LF", b"GET /a HTTP/1.1\nHost: x\n\n", "2.2"),
    _bad("request line too long", _get("Host: x", target="/" + "a" * 20000), "3", 414),
)

_FIELDS = (
    _good("no space before a value", _get("Host:x", "X-A:b"), "5"),
    _good("spaces around a value", _get("Host: x", "X-A: \t b \t "), "5"),
    _good("repeated field", _get("Host: x", "X-A: b", "x-a: c"), "RFC 9110, 5.3"),
    _good("bytes over 127 in a value", _get("Host: x", "X-A: \xe9"), "RFC 9110, 5.5"),
    _good(
        "upgrade is ignored", _get("Host: x", "Connection: Upgrade", "Upgrade: websocket"), "RFC 9110, 7.8"
    ),
    _good("underscore in a name is dropped", _get("Host: x", "Content_Length: 5"), "RFC 9110, 17.10"),
    _good("host with a port", _get("Host: [::1]:80"), "3.2"),
    _bad("no host", _get(), "3.2"),
    _bad("two hosts", _get("Host: x", "Host: x"), "3.2"),
    _bad("host with a path", _get("Host: x/y"), "3.2"),
    _bad("host with a user", _get("Host: a@x"), "3.2"),
    _bad("folded field", _get("Host: x", "X-A: b\r\n c"), "5.2"),
    _bad("first field is folded", _get(" Host: x"), "2.2"),
    _bad("space before a colon", _get("Host: x", "X-A : b"), "5.1"),
    _bad("no colon", _get("Host: x", "X-A"), "5"),
    _bad("no name", _get("Host: x", ": b"), "5.1"),
    _bad("space in a name", _get("Host: x", "X A: b"), "5.1"),
    _bad("bytes over 127 in a name", _get("Host: x", "X-\xe9: b"), "5.1"),
    _bad("NUL in a value", _get("Host: x", "X-A: a\0b"), "RFC 9110, 5.5"),
    _bad("control character in a value", _get("Host: x", "X-A: a\x01b"), "RFC 9110, 5.5"),
    _bad("bare CR in a value", _get("Host: x", "X-A: a\rb"), "2.2"),
    _bad("bare LF in a value", _get("Host: x", "X-A: a\nX-B: b"), "2.2"),
    _bad("bare LF before the body", b"GET /a HTTP/1.1\r\nHost: x\r\n\n", "2.2"),
    _bad("too many fields", _get("Host: x", *(f"X-{n}: y" for n in range(120))), "RFC 6585, 5", 431),
    _bad("a field too long", _get("Host: x", "X-A: " + "a" * 9000), "RFC 6585, 5", 431),
    _bad(
        "fields without end",
        _get("Host: x", *(f"X-{n}: {'a' * 8000}" for n in range(12))),
        "RFC 6585, 5",
        431,
    ),
)

_FRAMING = (
    _good("body of a length", _post("Content-Length: 5", body=b"hello"), "6.2", body="hello"),
    _good("length of zero", _post("Content-Length: 0"), "6.2", body=""),
    _good("zeros before a length", _post("Content-Length: 005", body=b"hello"), "6.2", body="hello"),
    _good("chunks", _chunked(b"5\r\nhello\r\n0\r\n\r\n"), "7.1", body="hello"),
    _good("several chunks", _chunked(b"1\r\nh\r\n4\r\nello\r\n0\r\n\r\n"), "7.1", body="hello"),
    _good("zeros before a chunk's size", _chunked(b"0005\r\nhello\r\n000\r\n\r\n"), "7.1", body="hello"),
    _good("hexadecimal size", _chunked(b"A\r\n0123456789\r\n0\r\n\r\n"), "7.1", body="0123456789"),
    _good("chunk extensions", _chunked(b'5;a=b;c="d e"\r\nhello\r\n0;x\r\n\r\n'), "7.1.1", body="hello"),
    _good("trailers", _chunked(b"5\r\nhello\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n"), "7.1.2", body="hello"),
    _good(
        "coding in capitals", _post("Transfer-Encoding: CHUNKED", body=b"1\r\na\r\n0\r\n\r\n"), "7", body="a"
    ),
    _bad("length and chunks", _chunked(b"0\r\n\r\n", "Content-Length: 5"), "6.3"),
    _bad(
        "chunks and length",
        _post("Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
        "6.3",
    ),
    _bad("two lengths", _post("Content-Length: 5", "Content-Length: 6", body=b"hello"), "6.3"),
    _bad("the same length twice", _post("Content-Length: 5", "Content-Length: 5", body=b"hello"), "6.3"),
    _bad("list of lengths", _post("Content-Length: 5, 5", body=b"hello"), "6.3"),
    _bad("negative length", _post("Content-Length: -5", body=b"hello"), "6.2"),
    _bad("length with a sign", _post("Content-Length: +5", body=b"hello"), "6.2"),
    _bad("hexadecimal length", _post("Content-Length: 0x5", body=b"hello"), "6.2"),
    _bad("length with a space", _post("Content-Length: 5 5", body=b"hello"), "6.2"),
    _bad("length that is empty", _post("Content-Length:", body=b"hello"), "6.2"),
    _bad("length with an underscore", _post("Content-Length: 1_0", body=b"0123456789"), "6.2"),
    _bad("length beyond measure", _post("Content-Length: " + "9" * 30), "6.2"),
    _bad("unknown coding", _post("Transfer-Encoding: gzip"), "6.1", 501),
    _bad("identity as a coding", _post("Transfer-Encoding: identity"), "6.1", 501),
    _bad("coding before chunked", _post("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), "6.1", 501),
    _bad("coding behind chunked", _post("Transfer-Encoding: chunked, gzip"), "6.1"),
    _bad("chunked twice", _post("Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"), "6.1"),
    _bad(
        "coding that only looks like chunked",
        _post("Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
        "6.1",
        501,
    ),
    _bad("coding in quotes", _post('Transfer-Encoding: "chunked"', body=b"0\r\n\r\n"), "6.1", 501),
    _bad("coding behind a vertical tab", _post("Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"), "6.1"),
    _bad("empty coding", _post("Transfer-Encoding:", body=b"0\r\n\r\n"), "6.1"),
    _bad("coding in HTTP/1.0", _get("Transfer-Encoding: chunked", version="HTTP/1.0", method="POST"), "6.1"),
    _bad("size that is no number", _chunked(b"zz\r\nhello\r\n0\r\n\r\n"), "7.1"),
    _bad("size with a sign", _chunked(b"+5\r\nhello\r\n0\r\n\r\n"), "7.1"),
    _bad("size with a prefix", _chunked(b"0x5\r\nhello\r\n0\r\n\r\n"), "7.1"),
    _bad("size with a space", _chunked(b"5 \r\nhello\r\n0\r\n\r\n"), "7.1"),
    _bad("empty size", _chunked(b"\r\nhello\r\n0\r\n\r\n"), "7.1"),
    _bad("size beyond measure", _chunked(b"f" * 17 + b"\r\nhello"), "7.1"),
    _bad("chunk that is longer than its size", _chunked(b"5\r\nhelloXX0\r\n\r\n"), "7.1"),
    _bad("chunk lines that end in a bare LF", _chunked(b"5\nhello\n0\n\n"), "7.1"),
    _bad("bare CR in an extension", _chunked(b"5;a\rb\r\nhello\r\n0\r\n\r\n"), "7.1.1"),
    _bad("bare LF in an extension", _chunked(b"5;a\nhello\r\n0\r\n\r\n"), "7.1.1"),
    _bad("extension without end", _chunked(b"5;" + b"a" * 9000 + b"\r\nhello\r\n0\r\n\r\n"), "7.1.1"),
    _bad("trailer that is none", _chunked(b"5\r\nhello\r\n0\r\nno colon\r\n\r\n"), "7.1.2"),
)

_SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

_CONNECTIONS = (
    Case("pipelined requests", _get("Host: x") * 5, (200,) * 5, False, "9.3.2"),
    Case(
        "pipelined behind a body",
        _post("Content-Length: 5", body=b"hello") + _get("Host: x"),
        (200, 200),
        False,
        "9.3.2",
        (("body", "hello"),),
    ),
    Case(
        "pipelined behind chunks",
        _chunked(b"5\r\nhello\r\n0\r\n\r\n") + _get("Host: x"),
        (200, 200),
        False,
        "9.3.2",
        (("body", "hello"),),
    ),
    Case(
        "a body that nobody reads is no request",
        _post(f"Content-Length: {len(_SMUGGLED)}", body=_SMUGGLED, target="/unread") + _get("Host: x"),
        (200, 200),
        False,
        "6.3",
    ),
    Case("a bad request behind a good one", _get("Host: x") + _get(), (200, 400), True, "9.3.2"),
    Case("nothing behind a bad one is served", _get() + _SMUGGLED, (400,), True, "9.3.2"),
    Case("close", _get("Host: x", "Connection: close"), (200,), True, "9.6"),
    Case(
        "nothing behind close is served",
        _get("Host: x", "Connection: close") + _SMUGGLED,
        (200,),
        True,
        "9.6",
    ),
    Case("close in a list", _get("Host: x", "Connection: te , Close"), (200,), True, "9.6"),
    Case("HTTP/1.0", _get(version="HTTP/1.0"), (200,), True, "9.3"),
    Case("HTTP/1.0 that goes on", _get("Connection: keep-alive", version="HTTP/1.0"), (200,), False, "9.3"),
    Case("HEAD", _get("Host: x", method="HEAD"), (200,), False, "RFC 9110, 9.3.2", head_request=True),
    Case(
        "HEAD of a stream", _get("Host: x", method="HEAD", target="/stream"), (200,), False, "6.3", (), True
    ),
    Case("204 has no body", _get("Host: x", target="/nothing"), (204,), False, "6.3"),
    Case("304 has no body", _get("Host: x", target="/unchanged"), (304,), False, "6.3"),
    Case("answer of unknown length", _get("Host: x", target="/stream"), (200,), False, "7.1"),
    Case("the same in HTTP/1.0", _get(target="/stream", version="HTTP/1.0"), (200,), True, "6.3"),
    Case(
        "100-continue",
        _post("Content-Length: 5", "Expect: 100-continue"),
        (100,),
        False,
        "RFC 9110, 10.1.1",
    ),
    Case(
        "100-continue for a body that nobody reads",
        _post("Content-Length: 5", "Expect: 100-continue", target="/unread"),
        (200,),
        True,
        "RFC 9110, 10.1.1",
    ),
    Case(
        "100-continue when the body is there already",
        _post("Content-Length: 5", "Expect: 100-continue", body=b"hello"),
        (200,),
        False,
        "RFC 9110, 10.1.1",
        (("body", "hello"),),
    ),
    Case(
        "100-continue without a body",
        _get("Host: x", "Expect: 100-continue"),
        (200,),
        False,
        "RFC 9110, 10.1.1",
    ),
    _bad("another expectation", _get("Host: x", "Expect: miracles"), "RFC 9110, 10.1.1", 417),
)

CASES: tuple[Case, ...] = (*_LINES, *_FIELDS, *_FRAMING, *_CONNECTIONS)
