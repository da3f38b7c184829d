"""Whatever a client sends, the answer is one of ours, and never a 500."""

# The tables of inputs below read as tables.
# ruff: noqa: E501

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from falcon.testing import create_environ
from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import Http  # noqa: TID252

METHODS = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"]
ROUTES = [
    "/files/", "/engine/", "/links/", "/files", "/files/fetch", "/files/mkdir", "/files/copy", "/files/download",
    "/files/deleted", "/files/restore", "/files/batch", "/blobs/config", "/blobs/check", "/blobs/commit",
    "/blobs/chunks/", "/blobs/",
]  # fmt: skip

RAW_PATH = st.binary(max_size=30) | st.sampled_from([b"a", b"d/e", b"l", b"d", b".system", b"../x", b"\xff"])
QUERY = st.lists(
    st.tuples(
        st.sampled_from(
            ["depth", "limit", "after", "offset", "glob", "deleted", "snapshot", "version", "fork", "recursive",
             "nofollow", "path"]
        ),
        st.sampled_from(["", "1", "-1", "true", "0" * 64, "x", "%ff", "%00", "MS9h", "**", "[", "HEAD", "/", "9" * 30])
        | st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="&#"), max_size=10),
    ),
    max_size=3,
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))  # fmt: skip
HEADER_VALUE = st.sampled_from(
    ["*", '"x"', 'W/"x"', '"', "bytes=0-", "bytes=-1", "bytes=5-2,1-", "items=1", "Thu, 01 Jan 1970 00:00:01 GMT",
     "application/json", "application/merge-patch+json", "text/plain; charset=x", "0", "-1", "\xff", "1" * 20]
) | st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=20)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(
        ["IF_MATCH", "IF_NONE_MATCH", "IF_MODIFIED_SINCE", "IF_UNMODIFIED_SINCE", "IF_RANGE", "RANGE", "X_SVC_UPDATED_AT",
         "X_SVC_CREATED_AT", "X_REQUEST_ID", "ACCEPT"]
    ),
    HEADER_VALUE,
    max_size=3,
)  # fmt: skip
SOME_PATH = st.sampled_from(
    [
        "/a",
        "/d",
        "/d/e",
        "/l",
        "/",
        "",
        "x",
        "/none",
        "/../x",
        "/.system",
        "\u0000",
        "\ud800",
        "/" + "n" * 300,
    ]
)
VALUE = st.recursive(
    SOME_PATH | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("00" * 32),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["path", "paths", "to", "from", "op", "items", "operations", "files", "hashes", "target", "destination",
             "content", "content_base64", "chunk_hashes", "lines", "bytes", "json_pointer", "if_content_hash", "version",
             "overwrite", "recursive", "message", "size"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
OPERATION = st.fixed_dictionaries(
    {"op": st.sampled_from(["put", "delete", "move", "copy", "link", "mkdir", "x"])},
    optional={
        "path": SOME_PATH,
        "from": SOME_PATH,
        "to": SOME_PATH,
        "target": SOME_PATH,
        "content": st.text(max_size=5),
        "recursive": st.booleans(),
        "overwrite": st.booleans(),
    },
)
BODY = (
    VALUE.map(json.dumps).map(str.encode)
    | st.fixed_dictionaries({"operations": st.lists(OPERATION, max_size=4)}).map(json.dumps).map(str.encode)
    | st.binary(max_size=30)
    | st.sampled_from([b"", b"{", b"[" * 3000, b'{"path": NaN}'])
)


def call(
    http: Http, method: str, path: bytes, query: str, headers: dict[str, str], body: bytes
) -> tuple[int, bytes]:
    """One request straight into the application, with any bytes in its path and headers."""
    environ = create_environ(path="/", method=method, query_string=query, body=body)
    environ["PATH_INFO"] = path.decode("latin-1")
    environ["RAW_URI"] = "/"
    environ.setdefault("CONTENT_LENGTH", "0")
    for name, value in headers.items():
        environ[name if name == "CONTENT_TYPE" else f"HTTP_{name}"] = value
    answer: list[Any] = []
    pieces = http.app(environ, lambda status, fields, exc_info=None: answer.extend((status, fields)))
    try:
        content = b"".join(pieces)
    finally:
        getattr(pieces, "close", lambda: None)()
    for name, value in answer[1]:
        (name + value).encode("latin-1")
        assert "\n" not in value
        assert "\r" not in value
    return int(answer[0][:3]), content


@pytest.fixture
def filled(http: Http) -> Http:
    http.fill("/a", "/d/e")
    http("PUT", "/links/l", json={"target": "/a"})
    http.put("/files/j.json", b'{"a": 1}')
    http.delete("/files/d/e")
    http.fill("/d/e", "/d/f")
    return http


@settings(max_examples=400)
@given(
    method=st.sampled_from(METHODS),
    route=st.sampled_from(ROUTES),
    rest=RAW_PATH,
    query=QUERY,
    headers=HEADERS,
    content_type=st.none() | HEADER_VALUE,
    body=BODY,
)
def test_no_request_gives_a_500(
    filled: Http,
    method: str,
    route: str,
    rest: bytes,
    query: str,
    headers: dict[str, str],
    content_type: str | None,
    body: bytes,
) -> None:
    path = route.encode() + (rest if route.endswith("/") else b"")
    if content_type is not None:
        headers = {**headers, "CONTENT_TYPE": content_type}
    status, content = call(filled, method, path, query, headers, body)
    assert status in {200, 201, 204, 206, 304, 400, 403, 404, 405, 409, 412, 413, 415, 416}
    if status >= 400 and method != "HEAD":
        answer = json.loads(content)
        assert answer["error"]
        assert answer["code"]


@settings(max_examples=300)
@given(route=st.sampled_from([route for route in ROUTES if not route.endswith("/")]), body=BODY)
def test_no_json_body_gives_a_500(filled: Http, route: str, body: bytes) -> None:
    status, _ = call(filled, "POST", route.encode(), "", {"CONTENT_TYPE": "application/json"}, body)
    assert status < 500


@given(
    path=st.lists(st.binary(min_size=1, max_size=6), min_size=1, max_size=3).map(b"/".join),
    content=st.binary(max_size=50),
)
def test_what_was_stored_under_any_path_reads_back(http: Http, path: bytes, content: bytes) -> None:
    status, body = call(http, "PUT", b"/engine/" + path, "", {}, content)
    if status in (200, 201):
        stored = json.loads(body)["path"]
        assert call(http, "GET", b"/engine/" + path, "", {}, b"") == (200, content)
        assert call(http, "GET", b"/engine" + stored.encode(), "", {}, b"") == (200, content)
    else:
        assert status in (400, 404, 409)


@given(
    ranges=st.lists(
        st.tuples(st.integers(0, 40) | st.none(), st.integers(0, 40) | st.none()), min_size=1, max_size=3
    )
)
def test_ranges_give_the_bytes_that_they_name(
    http: Http, ranges: list[tuple[int | None, int | None]]
) -> None:
    content = bytes(range(30))
    call(http, "PUT", b"/files/a", "", {}, content)
    field = "bytes=" + ",".join(f"{'' if a is None else a}-{'' if b is None else b}" for a, b in ranges)
    status, body = call(http, "GET", b"/files/a", "", {"RANGE": field}, b"")
    assert status in (200, 206, 416)
    if status == 200:
        assert body == content
    if len(ranges) == 1 and status == 206:
        (first, last), size = ranges[0], len(content)
        expected = (
            content[max(0, size - (last or 0)) :]
            if first is None
            else content[first : None if last is None else last + 1]
        )
        assert body == expected


def test_a_chunked_body_without_a_length_is_stored(http: Http) -> None:
    environ = create_environ(path="/files/a", method="PUT")
    environ.pop("CONTENT_LENGTH", None)
    environ["HTTP_TRANSFER_ENCODING"] = "chunked"
    environ["wsgi.input"] = io.BytesIO(b"x" * 300_000)
    status: list[str] = []
    b"".join(http.app(environ, lambda line, fields, exc_info=None: status.append(line)))
    assert status[0].startswith("201")
    assert http.get("/files/a").content == b"x" * 300_000
