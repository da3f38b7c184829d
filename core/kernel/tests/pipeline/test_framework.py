"""The lean application answers as Falcon's own does, whatever is added to it."""

from __future__ import annotations

import io
import sys
from typing import Any

import falcon
import pytest

from svc.pipeline.framework import LeanApp, LeanRequest, LeanResponse, RememberingRouter

PATHS = [
    *(
        "/data",
        "/text",
        "/media",
        "/stream",
        "/file",
        "/nothing",
        "/unserializable",
        "/headers",
        "/cookie",
        "/length",
    ),
    *(
        "/status/204",
        "/status/304",
        "/status/201",
        "/status/299",
        "/redirect",
        "/http-error",
        "/error",
        "/missing",
    ),
    *("/late", "/early", "/complete", "/sink/x", "/sub/a", "/sub/b/c", "/n%C3%B6"),
]


class Items:
    """Answers in every way that Falcon knows."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, what: str) -> None:
        getattr(self, f"_{what.replace('-', '_')}", self._other)(resp)

    def on_post(self, req: falcon.Request, resp: falcon.Response, what: str) -> None:
        resp.media = {"got": req.get_media(), "params": req.params, "template": req.uri_template}

    def _data(self, resp: falcon.Response) -> None:
        resp.data = b"data"

    def _text(self, resp: falcon.Response) -> None:
        resp.data, resp.text = b"data", "text wins"

    def _media(self, resp: falcon.Response) -> None:
        resp.media = {"a": 1}

    def _stream(self, resp: falcon.Response) -> None:
        resp.stream = iter((b"a", b"b"))

    def _file(self, resp: falcon.Response) -> None:
        resp.set_stream(io.BytesIO(b"content"), 7)
        resp.content_type = "text/plain"

    def _redirect(self, resp: falcon.Response) -> None:
        raise falcon.HTTPFound("/elsewhere")

    def _http_error(self, resp: falcon.Response) -> None:
        raise falcon.HTTPGone(description="it was here")

    def _error(self, resp: falcon.Response) -> None:
        raise LookupError("handled")

    def _unserializable(self, resp: falcon.Response) -> None:
        resp.media = object()

    def _headers(self, resp: falcon.Response) -> None:
        resp.append_header("Set-Cookie", "a=1")
        resp.append_header("X-One", "1")
        resp.append_header("X-One", "2")

    def _cookie(self, resp: falcon.Response) -> None:
        resp.set_cookie("name", "value")
        resp.data = b"c"

    def _length(self, resp: falcon.Response) -> None:
        resp.content_length = 99
        resp.data = b"four"

    def _other(self, resp: falcon.Response) -> None:
        pass


class Statuses:
    def on_get(self, req: falcon.Request, resp: falcon.Response, code: int) -> None:
        resp.status = code
        resp.data = b"body"


class Tail:
    def on_get(self, req: falcon.Request, resp: falcon.Response, path: str) -> None:
        resp.text = f"{path} {req.path} {sorted(req.params.items())}"


class Middleware:
    """Looks at everything, and sometimes interferes."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.set_header("X-Before", req.method)
        if req.path == "/early":
            raise LookupError("early")
        if req.path == "/complete":
            resp.complete = True

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, resource: object, params: dict[str, Any]
    ) -> None:
        resp.set_header("X-Routed", f"{type(resource).__name__} {params} {req.uri_template}")
        params.pop("more", None)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, succeeded: bool
    ) -> None:
        resp.set_header("X-After", f"{type(resource).__name__} {succeeded}")
        if req.path == "/late":
            raise LookupError("late")


@pytest.fixture
def app() -> LeanApp[LeanRequest]:
    app: LeanApp[LeanRequest] = LeanApp(
        request_type=LeanRequest, response_type=LeanResponse, router=RememberingRouter()
    )
    app.add_middleware(Middleware())
    app.add_route("/{what}", Items())
    app.add_route("/status/{code:int}", Statuses())
    app.add_route("/sub/{path:path}", Tail())
    app.add_sink(lambda req, resp, **found: setattr(resp, "text", f"sink {found}"), "/sink/(?P<name>.*)")

    def handle(req: falcon.Request, resp: falcon.Response, error: Exception, params: dict[str, Any]) -> None:
        resp.status, resp.text = 418, f"{error} {params}"

    app.add_error_handler(LookupError, handle)
    return app


def environ(method: str, target: str, body: bytes = b"") -> dict[str, Any]:
    path, _, query = target.partition("?")
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": falcon.uri.decode(path).encode().decode("latin-1"),
        "QUERY_STRING": query,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": "x",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
    }


def answers(app: LeanApp[LeanRequest], *request: Any) -> tuple[Any, Any]:
    """What the application answers by its own method and by Falcon's."""
    seen: list[Any] = []
    body = falcon.App.__call__(app, environ(*request), lambda *start: seen.extend(start[:2]))
    plain = (seen[0], seen[1], b"".join(body))
    status, headers, body = app.answer(environ(*request))
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    return (status, pairs, b"".join(body)), plain


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "WEBSOCKET", "ODD"])
def test_every_answer_is_falcons(app: LeanApp[LeanRequest], method: str, path: str) -> None:
    for _ in range(2):  # the second time, the route is remembered
        lean, plain = answers(app, method, path, b'{"a": 1}' if method == "POST" else b"")
        assert lean == plain
    lean, plain = answers(app, method, f"{path}?x=1&x=2&y=", b"7")
    assert lean == plain


@pytest.mark.parametrize("target", ["/a", "/a?b=1", "/%C3%B6", "/a/", ""])
def test_a_request_has_every_attribute_that_falcons_has(target: str) -> None:
    given = environ("PUT", target)
    options = falcon.RequestOptions()
    lean, plain = LeanRequest(given, options), falcon.Request(given, options)
    for name in falcon.Request.__slots__:
        if name not in ("__dict__", "context"):
            assert getattr(lean, name) == getattr(plain, name), name
    for name in ("uri", "forwarded_uri", "access_route", "headers", "media", "cookies", "prefix"):
        assert _outcome(lean, name) == _outcome(plain, name), name
        assert _outcome(lean, name) == _outcome(plain, name), name


def test_a_response_has_every_attribute_that_falcons_has() -> None:
    options = falcon.ResponseOptions()
    for lean, plain in (
        (LeanResponse(options), falcon.Response(options)),
        (LeanResponse(), falcon.Response()),
    ):
        for name in (*falcon.Response.__slots__, "complete"):
            if name not in ("__dict__", "options"):
                assert getattr(lean, name) == getattr(plain, name), name
        lean.context.noted = 1
        assert lean.context.noted == 1
        assert not hasattr(LeanResponse(options).context, "noted")


def test_what_one_request_is_told_no_other_one_knows() -> None:
    options = falcon.RequestOptions()
    first, second = LeanRequest(environ("GET", "/a"), options), LeanRequest(environ("GET", "/b"), options)
    assert first.uri == "http://x/a"
    assert second.uri == "http://x/b"
    first.uri_template = "/{x}"
    assert second.uri_template is None


def test_routes_that_are_added_later_are_found() -> None:
    router = RememberingRouter()
    router.add_route("/a/{rest:path}", Tail())
    assert router.find("/a/b")[2] == {"rest": "b"}
    router.find("/a/b")[2]["rest"] = "changed"
    assert router.find("/a/b")[2] == {"rest": "b"}
    assert router.find("/b") is None
    later = Tail()
    router.add_route("/b", later)
    assert router.find("/b")[0] is later


def test_only_so_many_routes_are_remembered() -> None:
    router = RememberingRouter()
    router.add_route("/{name}", Tail())
    for number in range(5000):
        assert router.find(f"/{number}")[2] == {"name": str(number)}
    assert router.find("/" + "x" * 5000)[2] == {"name": "x" * 5000}
    assert sum(sys.getsizeof(path) for path in router._known) < 1 << 20


def _outcome(req: falcon.Request, name: str) -> Any:
    try:
        return getattr(req, name)
    except Exception as error:
        return type(error)
