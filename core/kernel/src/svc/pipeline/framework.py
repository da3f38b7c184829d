"""Falcon's application, request, response and router, with fewer steps for each request.

What Falcon offers stays as it is: middleware, error handlers, sinks, media, hooks. What few requests need is
made on demand, where a path leads is remembered, and header fields go to the worker as they are kept. For
figures see decision 013. Only this module uses what is private to Falcon.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar

import falcon
from falcon.routing import CompiledRouter

__all__ = ["Fields", "LeanApp", "LeanRequest", "LeanResponse", "RememberingRouter"]

Fields: TypeAlias = list[tuple[str, str]] | dict[str, str]
"""Header fields: pairs, or values by name where no name comes twice."""

RequestType = TypeVar("RequestType", bound="LeanRequest")

_KNOWN_PATHS = 1024
_SHORT_PATH = 256
"""Longer paths are looked up each time, so that the cache stays small."""

_NOT_RENDERED = falcon.Response()._media_rendered
_NO_BODY = frozenset((falcon.HTTP_100, falcon.HTTP_101, falcon.HTTP_204, falcon.HTTP_304))
_NO_TYPE = frozenset((falcon.HTTP_204, falcon.HTTP_304))


class LeanRequest(falcon.Request):
    """Falcon's request. What few requests need are attributes of the class until somebody sets them."""

    __slots__ = ()

    def __init__(self, env: dict[str, Any], options: falcon.RequestOptions | None = None) -> None:
        path = env["PATH_INFO"]
        is_usual = options is not None and not (
            options.strip_url_path_trailing_slash or options._auto_parse_form_urlencoded
        )
        if not is_usual or env.get("QUERY_STRING") or not (path and path.isascii()):
            super().__init__(env, options)
            return
        assert options is not None
        self.env = env
        self.options = options
        self.method = env["REQUEST_METHOD"]
        self.path = path
        self.uri_template = None
        self.query_string = ""
        self._params = {}
        self.content_type = env.get("CONTENT_TYPE")
        self.stream = env["wsgi.input"]
        self.is_websocket = False
        self._wsgierrors = env["wsgi.errors"]
        self.context = self.context_type()


def _share_constants() -> None:
    """Gives the class what Falcon sets on each request and ``LeanRequest`` does not."""
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.input": None, "wsgi.errors": None}
    plain, lean = falcon.Request(environ), LeanRequest(environ, falcon.RequestOptions())
    for name in falcon.Request.__slots__:
        if name != "__dict__" and not hasattr(lean, name):
            setattr(LeanRequest, name, getattr(plain, name))


_share_constants()


class LeanResponse(falcon.Response):
    """Falcon's response. Its context is made when somebody asks for it.

    ``header_fields`` are by name in lower case, without ``set-cookie``; caches may keep what is immutable.
    """

    __slots__ = ("_made_context", "complete", "is_immutable")

    header_fields: dict[str, str]

    def __init__(self, options: falcon.ResponseOptions | None = None) -> None:
        self.complete = False
        self.is_immutable = False
        self._made_context: falcon.Context | None = None
        if options is None:
            super().__init__()
            return
        self.options = options
        self.status = falcon.HTTP_200
        self._headers = {}
        self._extra_headers = None
        self._cookies = None
        self.text = None
        self.stream = None
        self._data = None
        self._media = None
        self._media_rendered = _NOT_RENDERED

    @property
    def context(self) -> falcon.Context:
        """A place for whatever a responder wants to keep with the response."""
        made = self._made_context
        if made is None:
            made = self._made_context = self.context_type()
        return made

    @context.setter
    def context(self, context: falcon.Context) -> None:
        self._made_context = context

    def fields(self, media_type: str | None) -> Fields:
        """Returns the header fields."""
        if self._extra_headers or self._cookies is not None:
            return self._wsgi_headers(media_type)
        headers = self._headers
        if media_type is not None and "content-type" not in headers:
            headers["content-type"] = media_type
        return headers


# The places where Falcon keeps them: a property would be a call more each time that one is set.
LeanResponse.header_fields = falcon.Response._headers
LeanResponse.data = falcon.Response._data  # type: ignore[method-assign, assignment]


class RememberingRouter(CompiledRouter):
    """Falcon's router, which remembers where short paths lead."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Any] = {}

    def add_route(self, uri_template: str, resource: object, **options: Any) -> None:
        """Adds a route; see the base class."""
        self._known.clear()
        super().add_route(uri_template, resource, **options)

    def forget(self) -> None:
        """Forgets where paths lead; it is looked up again."""
        self._known.clear()

    def find(self, uri: str, req: falcon.Request | None = None) -> Any:
        """Finds a route; see the base class."""
        known = self._known.get(uri)
        if known is None:
            known = super().find(uri, req)
            if known is None or len(uri) > _SHORT_PATH:
                return known
            if len(self._known) >= _KNOWN_PATHS:
                self._known.clear()
            self._known[uri] = known
        resource, methods, values, template = known
        return resource, methods, values.copy(), template


class LeanApp(falcon.App[RequestType, LeanResponse]):
    """Falcon's application, which returns its answers instead of handing them to a server."""

    def answer(self, environ: dict[str, Any]) -> tuple[str, Fields, Iterable[bytes]]:
        """Does what ``falcon.App.__call__`` does with a request, in the same order."""
        req = self._request_type(environ, self.req_options)
        resp = self._response_type(self.resp_options)
        params: dict[str, Any] = {}
        resource: object | None = None
        succeeded = False
        before: Any  # Falcon's types leave open whether middleware is independent, and whether this is ASGI
        responder: Any
        before, routed, after = self._middleware
        try:
            if req.method in self._META_METHODS:
                raise falcon.HTTPBadRequest
            for process_request in before:
                process_request(req, resp)
                if resp.complete:
                    break
            else:
                responder, params, resource, req.uri_template = self._get_responder(req)
                for process_resource in routed if resource else ():
                    process_resource(req, resp, resource, params)
                    if resp.complete:
                        break
                else:
                    responder(req, resp, **params)
            succeeded = True
        except Exception as error:
            if not self._handle_exception(req, resp, error, params):
                raise
        for process_response in after:
            try:
                process_response(req, resp, resource, succeeded)
            except Exception as error:
                if not self._handle_exception(req, resp, error, params):
                    raise
                succeeded = False
        return self._finish(req, resp, params)

    def _finish(
        self, req: RequestType, resp: LeanResponse, params: dict[str, Any]
    ) -> tuple[str, Fields, Iterable[bytes]]:
        body: Iterable[bytes]
        length: int | None
        data = resp._data
        if data is not None and resp.text is None:
            body, length = [data], len(data)
        else:
            try:
                body, length = self._get_body(resp, req.env.get("wsgi.file_wrapper"))
            except Exception as error:
                if not self._handle_exception(req, resp, error, params):
                    raise
                body, length = [], 0
        line = resp.status
        if not (type(line) is str and " " in line):
            line = falcon.code_to_http_status(line)
        media_type: str | None = self.resp_options.default_media_type
        if line in _NO_BODY:
            body, length = [], None
            if line in _NO_TYPE:
                media_type = None
        if req.method == "HEAD":
            body = []
            if "content-length" in resp._headers:
                length = None
        if length is not None:
            resp._headers["content-length"] = str(length)
        return line, resp.fields(media_type), body
