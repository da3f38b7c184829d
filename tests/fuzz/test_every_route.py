"""Requests that nobody meant: whatever is sent, the server answers below 500, soon, and lives on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import example, given, settings
from hypothesis import strategies as st

from svc_blackbox.client import Client, files
from svc_blackbox.raw import RawResponse, exchange
from svc_blackbox.server import Server

CONTENT = bytes(range(256)) * 300
"""What /fuzz/file holds: more than one chunk."""

DOCUMENT = b'{"a": {"b": [1, 2]}}'
"""What /fuzz/doc.json holds."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    server = Server(folder / "fuzz.svcdb").start()
    yield server
    client = server.client()
    assert client.get("/system/health").json()["status"] == "healthy"
    client.close()
    assert server.stop() == 0
    assert "Traceback" not in server.log_text()


def prepare(server: Server) -> None:
    """Makes sure that the files which the requests aim at are there."""
    with Client(server.url) as client:
        if client.head("/files/fuzz/file").headers["X-Svc-Size"] != str(len(CONTENT)):
            response = client.put_file("/fuzz/file", CONTENT)
            if response.status == 409:
                client.delete("/files/fuzz", recursive="true")
                client.store("/fuzz/file", CONTENT)
        client.put_file("/fuzz/doc.json", DOCUMENT)


def assert_sane(response: RawResponse | None, *, framed: bool = True) -> None:
    """An answer below 500; errors have their one shape; only a broken frame may go unanswered."""
    if response is None:
        assert not framed, "the server closed without an answer"
        return
    assert response.status < 500 or (not framed and response.status in (501, 505)), response
    if response.status >= 400 and response.body:
        value = json.loads(response.body)
        assert set(value) >= {"error", "code"}, value


USUAL = st.sampled_from(["fuzz", "file", "doc.json", "new", "sub"])
TOKENS = st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
SEGMENTS = st.one_of(
    st.sampled_from(
        [
            "fuzz",
            "file",
            "doc.json",
            "..",
            ".",
            "",
            "%2e%2e",
            "%00",
            "%ff",
            "%",
            "%zz",
            "%2F",
            ".svc-system",
            "*",
            "[a",
            "a" * 256,
            "%C3%A9",
            "e%CC%81",
            ";x=1",
            "mkdir",
            "batch",
            "copy",
            "0" * 64,
            "~",
            "\\",
        ]
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="?# "), max_size=12),
)
PREFIXES = st.sampled_from(
    [
        "/files",
        "/engine",
        "/links",
        "/blobs",
        "/blobs/chunks",
        "/blobs/config",
        "/blobs/check",
        "/blobs/commit",
        "/files/batch",
        "/files/fetch",
        "/files/copy",
        "/files/mkdir",
        "/files/download",
        "/files/deleted",
        "/files/restore",
        "/system/health",
        "/system/plugins",
        "/system/findings",
        "/system/info",
        "/system/whoami",
        "/system",
        "/",
        "",
        "/version",
        "/query",
    ]
)
ODD = st.sampled_from(
    [
        "",
        "0",
        "-1",
        "1",
        "9" * 40,
        "1e9",
        "true",
        "false",
        "null",
        "x",
        "%00",
        "%ff",
        "/",
        "..",
        "*",
        "**/*",
        "[",
        "{",
        "bytes=0-",
        "HEAD",
        "0" * 64,
        "a" * 64,
        "2026-01-01",
        "%F0%9F%A6%86",
        "+",
        "&&",
        "==",
    ]
)
PARAMETERS = st.sampled_from(
    [
        "snapshot",
        "version",
        "fork",
        "nofollow",
        "depth",
        "glob",
        "limit",
        "after",
        "offset",
        "deleted",
        "recursive",
        "path",
        "x",
        "",
    ]
)
QUERIES = st.lists(st.tuples(PARAMETERS, ODD), max_size=4).map(
    lambda pairs: "?" + "&".join(f"{name}={value}" for name, value in pairs) if pairs else ""
)
HEADER_VALUES = st.one_of(
    st.sampled_from(
        [
            "",
            "*",
            '""',
            '"a"',
            'W/"a"',
            '"a", "b"',
            '"',
            "bytes=0-1",
            "bytes=-",
            "bytes=5-1",
            "bytes=0-1,3-4",
            "bytes=99999999999999999999-",
            "gzip",
            "application/json",
            "application/merge-patch+json",
            "text/plain",
            "multipart/form-data",
            "a/b; charset=no-such",
            "Sat, 29 Oct 1994 19:43:31 GMT",
            "Bearer x",
            "Basic !!",
            "-1",
            "0",
            "a" * 3000,
            "application/json; charset=utf-16",
            "///",
            ";",
            ",",
        ]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30),
)
HEADER_NAMES = st.sampled_from(
    [
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Range",
        "Range",
        "Content-Type",
        "Accept",
        "Accept-Encoding",
        "Authorization",
        "Content-Encoding",
        "X-Request-Id",
        "Cookie",
        "Origin",
        "Content-MD5",
        "Content-Range",
        "Forwarded",
        "X-Forwarded-For",
        "Upgrade",
        "TE",
        "X-HTTP-Method-Override",
    ]
)
HEADERS = st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=5)


@st.composite
def framings(draw: st.DrawFn) -> tuple[list[str], bytes]:
    """A body with the headers that frame it rightly: by length, or in chunks."""
    body = draw(
        st.one_of(
            st.just(b""),
            st.binary(max_size=200),
            st.sampled_from([b"{}", b"[]", b"null", b'{"path": "/fuzz/x"}', b'{"a": 1}', b"x" * 70_000]),
        )
    )
    if draw(st.booleans()):
        return [f"Content-Length: {len(body)}"], body
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=3)))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True) if b > a]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    return ["Transfer-Encoding: chunked"], framed


def build(
    method: str, target: str, headers: list[tuple[str, str]], framing: tuple[list[str], bytes]
) -> bytes:
    lines = [f"{method} {target or '/'} HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers] + framing[0]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + framing[1]


@settings(max_examples=700)
@given(
    method=TOKENS,
    prefix=PREFIXES,
    segments=st.lists(st.one_of(USUAL, USUAL, USUAL, SEGMENTS), max_size=4),
    query=QUERIES,
    headers=HEADERS,
    framing=framings(),
)
def test_well_framed_requests_of_any_content(
    server: Server,
    method: str,
    prefix: str,
    segments: list[str],
    query: str,
    headers: list[tuple[str, str]],
    framing: tuple[list[str], bytes],
) -> None:
    target = "/".join([prefix, *segments]) + query
    data = build(method, target if target.startswith("/") else "/" + target, headers, framing)
    response = None
    try:
        response = exchange(server.url, data) if method != "HEAD" else head_exchange(server, data)
    except AssertionError as error:
        raise AssertionError((data, error)) from error
    assert_sane(response)


def head_exchange(server: Server, data: bytes) -> RawResponse | None:
    from svc_blackbox.raw import RawConnection

    with RawConnection(server.url) as connection:
        connection.send(data)
        return connection.response(head=True)


BASES = [
    build("PUT", "/files/fuzz/mutant", [("Content-Type", "text/plain")], (["Content-Length: 5"], b"hello")),
    build("PUT", "/files/fuzz/mutant", [], (["Transfer-Encoding: chunked"], b"5\r\nhello\r\n0\r\n\r\n")),
    build("GET", "/files/fuzz/file?depth=-1", [("Range", "bytes=0-9"), ("If-None-Match", '"x"')], ([], b"")),
    build(
        "POST",
        "/files/mkdir",
        [("Content-Type", "application/json")],
        (["Content-Length: 13"], b'{"path":"/f"}'),
    ),
]


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A good request with a few bytes lost, doubled or replaced: often one that is framed wrongly."""
    data = bytearray(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(1, 5))):
        place = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["insert", "remove", "replace", "cut", "double"]))
        noise = draw(
            st.sampled_from([b"\r\n", b"\n", b"\r", b"\x00", b" ", b":", b"\t", b"\xff", b"0", b"f", b"-"])
        )
        if kind == "insert":
            data[place:place] = noise
        elif kind == "remove":
            del data[place : place + draw(st.integers(1, 8))]
        elif kind == "replace":
            data[place : place + 1] = noise
        elif kind == "cut":
            del data[place:]
        else:
            data[place:place] = data[max(0, place - 10) : place]
    return bytes(data)


@settings(max_examples=500)
@given(data=mutants())
def test_damaged_requests(server: Server, data: bytes) -> None:
    head = re.match(rb"\s*HEAD\b", data) is not None
    assert_sane(
        head_exchange(server, data) if head else exchange(server.url, data, finish=True), framed=False
    )


PATHS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["/fuzz/file", "/fuzz/doc.json", "/fuzz/new", "/fuzz/sub", "/fuzz"]),
    st.sampled_from(["/fuzz/file", "/fuzz/doc.json", "/fuzz/more", "/fuzz/sub/x"]),
    st.sampled_from(
        [
            "/fuzz/file",
            "/fuzz/doc.json",
            "/fuzz",
            "/fuzz/new",
            "/",
            "",
            "/a/../b",
            "/.svc-system/x",
            "/x\u0000",
            "/" + "y" * 256,
            "/fuzz/file/below",
            "relative",
            "/\ud800",
            "/e\u0301",
        ]
    ),
    st.text(max_size=20),
    st.none(),
    st.integers(),
)
HASHES: st.SearchStrategy[Any] = st.one_of(
    st.just(blake3(DOCUMENT).hexdigest()),
    st.just(blake3(DOCUMENT).hexdigest()),
    st.sampled_from(["0" * 64, "zz", "", "A" * 64, 5, None]),
    st.text(max_size=8),
)
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=10),
    st.sampled_from([2**63, -(2**63), 2**200, 1e308, "\ud800", ""]),
)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
NUMBER_PAIRS = st.lists(st.integers(0, 300), min_size=2, max_size=2)
PAIRS: st.SearchStrategy[Any] = st.one_of(
    NUMBER_PAIRS, NUMBER_PAIRS, st.lists(st.integers(-5, 10**6), max_size=3), SCALARS
)


def objects(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects of the right members: all of them, some of them, or some with values of a wrong type."""
    loose = {name: st.one_of(strategy, strategy, ANYTHING) for name, strategy in members.items()}
    whole = st.fixed_dictionaries(members)
    return st.one_of(whole, whole, st.fixed_dictionaries({}, optional=members), st.fixed_dictionaries(loose))


CONTENT_TYPES = st.sampled_from(["text/plain", "a/b", "", "x", "a\r\nb: c", "\u00e9/x", "a/" + "b" * 5000])
CHUNKS = st.lists(HASHES, max_size=3)
OPERATION = st.one_of(
    objects(op=st.just("put"), path=PATHS, content=st.text(max_size=20)),
    objects(op=st.just("put"), path=PATHS, content_base64=st.sampled_from(["", "YQ==", "***", "YQ"])),
    objects(op=st.just("put"), path=PATHS, content=st.just("x"), content_type=CONTENT_TYPES),
    objects(op=st.just("put"), path=PATHS, chunk_hashes=CHUNKS),
    objects(op=st.just("delete"), path=PATHS),
    objects(op=st.just("delete"), path=PATHS, recursive=st.booleans()),
    objects(**{"op": st.sampled_from(["move", "copy"]), "from": PATHS, "to": PATHS}),
    objects(op=st.text(max_size=6), path=PATHS),
)
POINTERS = st.sampled_from(["", "/a", "/a/b/0", "/a/b/-", "a", "/~", "/a/b/99999999999", "/~2"])
BODIES = {
    "/files/batch": objects(operations=st.lists(OPERATION, max_size=4)),
    "/files/fetch": st.one_of(
        objects(paths=st.lists(PATHS, max_size=4)),
        objects(
            items=st.lists(
                st.one_of(
                    objects(path=PATHS, lines=PAIRS),
                    objects(path=PATHS, bytes=PAIRS),
                    objects(path=PATHS, chars=PAIRS),
                    objects(path=PATHS, if_content_hash=HASHES),
                    objects(path=PATHS, json_pointer=POINTERS),
                ),
                max_size=4,
            )
        ),
    ),
    "/files/mkdir": objects(path=PATHS),
    "/files/copy": objects(paths=st.lists(PATHS, max_size=3), destination=PATHS),
    "/files/download": objects(paths=st.lists(PATHS, max_size=3)),
    "/files/restore": objects(path=PATHS, version=HASHES),
    "/blobs/check": objects(hashes=st.lists(HASHES, max_size=4)),
    "/blobs/commit": objects(
        files=st.lists(
            objects(
                path=PATHS,
                content_type=st.sampled_from(["a/b", "", "a\nb"]),
                chunk_hashes=st.lists(HASHES, max_size=3),
                size=st.integers(),
                content_hash=HASHES,
            ),
            max_size=3,
        )
    ),
}


@pytest.mark.parametrize("route", sorted(BODIES))
@settings(max_examples=120)
@given(data=st.data())
def test_json_bodies_that_are_nearly_right(server: Server, route: str, data: st.DataObject) -> None:
    prepare(server)
    body = json.dumps(data.draw(st.one_of(BODIES[route], BODIES[route], ANYTHING))).encode()
    headers = [("Content-Type", "application/json")]
    response = exchange(server.url, build("POST", route, headers, ([f"Content-Length: {len(body)}"], body)))
    if response is not None and response.headers.get("content-type", "").startswith("application/zip"):
        assert response.status == 200
        return
    assert_sane(response)


@pytest.mark.parametrize("media", ["application/json", "application/merge-patch+json"])
@settings(max_examples=100)
@given(
    body=st.one_of(objects(to=PATHS), ANYTHING), path=st.sampled_from(["file", "doc.json", "new.json", ""])
)
def test_patch_bodies_that_are_nearly_right(server: Server, media: str, body: Any, path: str) -> None:
    prepare(server)
    content = json.dumps(body).encode()
    framing = ([f"Content-Length: {len(content)}"], content)
    assert_sane(
        exchange(server.url, build("PATCH", f"/files/fuzz/{path}", [("Content-Type", media)], framing))
    )


@settings(max_examples=150)
@given(body=st.one_of(objects(target=PATHS), ANYTHING), name=st.sampled_from(["l1", "l2", "file", "l1/x"]))
def test_link_bodies_that_are_nearly_right(server: Server, body: Any, name: str) -> None:
    prepare(server)
    content = json.dumps(body).encode()
    framing = ([f"Content-Length: {len(content)}"], content)
    headers = [("Content-Type", "application/json")]
    assert_sane(exchange(server.url, build("PUT", f"/links/fuzz/{name}", headers, framing)))
    assert_sane(exchange(server.url, build("GET", f"/files/fuzz/{name}?depth=-1", [], ([], b""))))


def expected_range(header: str, size: int) -> tuple[int, bytes | None]:
    """What RFC 9110 wants for one range, or for something that is none."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header)
    if not match or match[1] == match[2] == "":
        return 200, CONTENT
    if match[1] == "":
        length = int(match[2])
        return (206, CONTENT[-length:]) if length else (416, None)
    start = int(match[1])
    end = int(match[2]) if match[2] else size - 1
    if end < start and match[2]:
        return 200, CONTENT
    return (206, CONTENT[start : end + 1]) if start < size else (416, None)


NUMBERS = st.one_of(
    st.just(""),
    st.integers(0, len(CONTENT) + 10).map(str),
    st.sampled_from(["0", "65535", "65536", "76799", "76800", "99999999999999999999", "007"]),
)


@settings(max_examples=250)
@given(header=st.builds(lambda a, b: f"bytes={a}-{b}", NUMBERS, NUMBERS))
@example(header="bytes=-0")
@example(header="bytes=-")
def test_ranges_mean_what_the_standard_says(server: Server, header: str) -> None:
    prepare(server)
    response = exchange(server.url, build("GET", files("/fuzz/file"), [("Range", header)], ([], b"")))
    assert response is not None
    status, body = expected_range(header, len(CONTENT))
    assert response.status == status
    if body is not None:
        assert response.body == body


@settings(max_examples=120)
@given(
    content=st.binary(max_size=3000),
    sizes=st.lists(st.integers(1, 1000), min_size=1, max_size=6),
    pauses=st.sets(st.integers(0, 5), max_size=2),
)
def test_however_a_body_is_cut_up_it_is_stored_whole(
    server: Server, content: bytes, sizes: list[int], pauses: set[int]
) -> None:
    import time

    from svc_blackbox.raw import RawConnection

    with RawConnection(server.url) as connection:
        connection.send(b"PUT /files/pieces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        rest = content
        for index in range(10_000):
            if not rest:
                break
            size = sizes[index % len(sizes)]
            piece, rest = rest[:size], rest[size:]
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            if index in pauses:
                time.sleep(0.002)
        connection.send(b"0\r\n\r\n")
        response = connection.response()
    assert response is not None
    assert response.status in (200, 201)
    with Client(server.url) as client:
        assert client.read("/pieces") == content
