"""The kernel's middleware, in its fixed order: request id, CORS, routing, identity, permission.

Each class does one step and raises to refuse. Nothing here depends on which plugins are installed or in which
order. Limits are checked where a body is read: see ``bodies``.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import falcon

from svc.errors import AuthRequired, Forbidden, InvalidPath, MethodNotAllowed, NotFound, SvcError
from svc.operations.access import AccessKind
from svc.paths import Path, is_system_path, parse_path
from svc.pipeline.client_address import ClientAddresses
from svc.pipeline.context import RequestContext, SvcRequest, denial
from svc.pipeline.refusals import hidden_path
from svc.pipeline.responses import CONTENT_POLICY
from svc.pipeline.routing import BoundRoute, Endpoint
from svc.pipeline.sessions import session_token
from svc.plugins.contracts import Credentials, Operation
from svc.redaction import holds_credential

if TYPE_CHECKING:
    from svc.pipeline.callers import Caller
    from svc.pipeline.framework import LeanResponse
    from svc.pipeline.lifetime import Lifetime
    from svc.pipeline.service import CommitState, LiveService, Service
    from svc.pipeline.settings import Limits

__all__ = [
    "CrossOrigin",
    "Identification",
    "PermissionCheck",
    "RequestIds",
    "Routing",
    "authorize_again",
    "identify_caller",
    "renew_caller",
]

_LIST = Operation.LIST
_WELL_FORMED_ID = re.compile(r"[A-Za-z0-9._:@/+=\-]{1,128}", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

EXPOSED_HEADERS = (
    *("Accept-Ranges", "Content-Length", "Content-Range", "ETag", "Last-Modified", "Location", "Retry-After"),
    "X-Request-Id",
)
"""What pages of other origins may read of any answer; descriptors of plugins name more."""

PREFLIGHT_SECONDS = "600"

_SHORT_PATH = 256
"""Longer texts are parsed each time, so that the cache stays small."""

_PROCESS = os.urandom(10).hex()
# They begin so high that hex() always gives twelve digits behind the first: cheaper than padding.
_numbers = itertools.count(1 << 48)


def _begin_process() -> None:
    global _PROCESS
    _PROCESS = os.urandom(10).hex()


os.register_at_fork(after_in_child=_begin_process)


class RequestIds:
    """Names the request, by its ``X-Request-Id`` when that is well formed, and says where it is from."""

    def __init__(
        self, lifetime: Lifetime, limits: Limits, addresses: ClientAddresses, hsts_s: int = 0
    ) -> None:
        self._lifetime = lifetime
        self._limits = limits
        self._addresses = addresses
        self._strict_transport = f"max-age={hsts_s}; includeSubDomains" if hsts_s else None

    def process_request(self, req: SvcRequest, resp: LeanResponse) -> None:
        """Sets the id, in the context and in the answer, and the client's address."""
        context = req.context
        env = req.env
        env["svc.context"] = context
        request_id = context.request_id = env["svc.request_id"]
        context.client_address = self._addresses.of(env)
        context.lifetime = self._lifetime
        context.limits = self._limits
        fields = resp.header_fields
        fields["x-request-id"] = request_id
        # Nobody may take an answer for anything but what it says it is.
        fields["x-content-type-options"] = "nosniff"
        fields["content-security-policy"] = CONTENT_POLICY
        # By TLS alone (RFC 6797, 7.2).
        if self._strict_transport is not None and env["wsgi.url_scheme"] == "https":
            fields["strict-transport-security"] = self._strict_transport


class CrossOrigin:
    """Lets pages of the allowed origins call (Fetch standard, CORS protocol), and answers preflights.

    Credentials are never allowed as such: tokens travel in a header that the page itself sets.
    """

    def __init__(self, origins: tuple[str, ...], headers: Iterable[str] = ()) -> None:
        by_name = {name.lower(): name for name in (*headers, *EXPOSED_HEADERS)}
        self._exposed = ", ".join(by_name[name] for name in sorted(by_name))
        self._any = "*" in origins
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def process_request(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Lets the answer be read by the page that asks."""
        if not self._origins:
            return
        resp.append_header("Vary", "Origin")
        origin = req.env.get("HTTP_ORIGIN")
        if origin is None or not (self._any or origin.lower() in self._origins):
            return
        resp.set_header("Access-Control-Allow-Origin", "*" if self._any else origin)
        resp.set_header("Access-Control-Expose-Headers", self._exposed)

    def process_resource(
        self, req: SvcRequest, resp: falcon.Response, resource: BoundRoute, params: dict[str, Any]
    ) -> None:
        """Answers what a preflight asks for."""
        if req.method != "OPTIONS" or resp.get_header("Access-Control-Allow-Origin") is None:
            return
        if "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in req.env:
            resp.set_header("Access-Control-Allow-Methods", ", ".join(resource.allowed))
            requested = req.env.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "")
            if requested and requested.isascii() and requested.isprintable():
                resp.set_header("Access-Control-Allow-Headers", requested)
            resp.set_header("Access-Control-Max-Age", PREFLIGHT_SECONDS)


class Routing:
    """Parses paths, answers OPTIONS, 404 for the system's paths and unused plugins, 405 for other methods."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def process_request(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Refuses URLs that are not percent-encoded UTF-8."""
        raw_uri = req.env.get("RAW_URI", "")
        if "%" in raw_uri and _BAD_ESCAPE.search(raw_uri.partition("?")[0]):
            raise InvalidPath("The URL holds a '%' that is not followed by two hex digits.")
        path_info = req.env["PATH_INFO"]
        if not path_info.isascii():
            try:
                path_info.encode("latin-1").decode("utf-8")
            except UnicodeError:
                raise InvalidPath("The URL's path is not valid UTF-8.") from None
        if req.method == "OPTIONS" and req.path == "*":
            resp.status = 204
            resp.complete = True

    def process_resource(
        self, req: SvcRequest, resp: falcon.Response, resource: BoundRoute, params: dict[str, Any]
    ) -> None:
        """Finds the endpoint, and gives the responder its paths."""
        endpoint = resource.endpoints.get(req.method)
        _parse_paths(req, endpoint or next(iter(resource.endpoints.values())), params)
        live = self._service.live if resource.answers_early else self._service.require()
        if endpoint is not None:
            req.env["svc.endpoint"] = endpoint
            req.env["svc.params"] = params
            context: RequestContext = req.context
            if endpoint.is_of_kernel:
                context.service = self._service
                if live is not None:
                    context.database = live.database
                return
            assert live is not None
            state = context.commit_state = live.commit_state()
            plugin = context.plugin = state.contexts.get(endpoint.plugin_id)
            if plugin is not None:
                return
        self._answer_without_endpoint(req, resp, resource, live)

    @staticmethod
    def _answer_without_endpoint(
        req: SvcRequest, resp: falcon.Response, resource: BoundRoute, live: LiveService | None
    ) -> None:
        served = {
            method
            for method, known in resource.endpoints.items()
            if live is None or live.serves(known.plugin_id)
        }
        if not served or req.method in resource.endpoints:
            raise NotFound("There is no such resource.")
        allowed = sorted({*served, "OPTIONS"})
        if req.method != "OPTIONS":
            raise MethodNotAllowed(f"The resource does not take {_shown(req.method)}.", allowed=allowed)
        resp.set_header("Allow", ", ".join(allowed))
        resp.status = 204
        resp.complete = True


class Identification:
    """Asks the one auth mode of this server who is calling. Public routes are not asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def process_resource(
        self, req: SvcRequest, resp: falcon.Response, resource: BoundRoute, params: dict[str, Any]
    ) -> None:
        """Sets the caller."""
        endpoint: Endpoint = req.env["svc.endpoint"]
        if endpoint.is_public:
            return
        context = req.context
        state = context.commit_state
        if state is None:
            state = self._service.require().commit_state()
            req.env["svc.live"] = state.live
        caller = _identify(state, req)
        context.challenge = caller.challenge
        context.caller = caller


def _identify(state: CommitState, req: SvcRequest, as_of_s: float | None = None) -> Caller:
    authorization = req.env.get("HTTP_AUTHORIZATION")
    caller = state.live.callers.by_authorization.get(authorization)
    if (
        caller is None
        or caller.head is not state.head
        or (time.time() if as_of_s is None else as_of_s) >= caller.ends_s
    ):
        caller = _ask(state, req, authorization, as_of_s)
    return caller


def _ask(state: CommitState, req: SvcRequest, authorization: str | None, as_of_s: float | None) -> Caller:
    live = state.live
    mode = live.auth_mode_of(state)
    req.context.challenge = mode.challenge
    credentials = credentials_of(req, req.env["svc.endpoint"], as_of_s)
    try:
        identity = mode.authenticate(credentials)
    except SvcError:
        raise
    except Exception as error:
        live.note_auth_failure(error)
        raise
    if identity is None:
        token = session_token(req.env) if authorization is None else None
        if token is None:
            raise AuthRequired("This needs valid credentials.")
        req.env["svc.by_session"] = True
        req.env["HTTP_AUTHORIZATION"] = f"Bearer {token}"
        return _identify(state, req, as_of_s)
    # Not where another field of the request, or its query, may have decided. The mode may have looked at
    # a later commit than the state's; the next request finds another state then.
    is_by_token = credentials.scheme == "bearer" and bool(credentials.value)
    is_enough = mode.asked_once_a_commit and (is_by_token or not mode.has_keys)
    head = state.head if is_enough else None
    return live.callers.remember(authorization, identity, mode.challenge, head)


def identify_caller(req: SvcRequest, token: str | None = None) -> None:
    """Finds out who sends a request to a public route; ``req.context`` says so from then on.

    Args:
        req: the request, to a route of a plugin.
        token: a bearer token that counts instead of what the request brings.

    Raises:
        AuthRequired: it brings no credentials, or none that are good.
        Forbidden: a page of another origin has sent it, with the cookie of a session.
    """
    context = req.context
    state = context.commit_state
    if state is None:
        raise RuntimeError("This route belongs to no plugin.")
    if token is not None:
        req.env["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    caller = _identify(state, req)
    context.challenge = caller.challenge
    context.caller = caller


def renew_caller(req: SvcRequest) -> None:
    """Asks again who sent a request whose answer takes long; ``req.context`` says so from then on.

    A stream calls it before each part that it sends: rights that were taken away end there. Cheap.

    Raises:
        AuthRequired: the credentials have ended or were revoked.
        NotFound: the plugin of the route was disabled, or is not in use any more.
        ServiceUnavailable: that of the auth mode was.
    """
    _renew(req)


def authorize_again(req: SvcRequest, began_s: float) -> None:
    """Decides again whether a request may go on, by what is granted now: its body may have taken hours.

    That its credentials have come to their natural end since it came is no reason to refuse it.

    Args:
        req: the request; ``req.context`` says from then on who sent it, and what the database is now.
        began_s: when it came, in Unix seconds.

    Raises:
        AuthRequired: the credentials were revoked.
        NotFound, Forbidden: what the responder declares was taken away; or the plugin was disabled.
    """
    before = req.context.caller
    if before is None:
        return
    _renew(req, began_s)
    caller = req.context.caller
    if caller is not before and caller is not None:
        _require_declared(req.context, caller, req.env["svc.endpoint"], req.env["svc.params"])


def _renew(req: SvcRequest, as_of_s: float | None = None) -> None:
    context = req.context
    known = context.commit_state
    if known is None:
        live: LiveService | None = req.env.get("svc.live")
        if live is not None:
            context.caller = _identify(live.commit_state(), req, as_of_s)
        return
    state = known.live.commit_state()
    if state is not known:
        context.commit_state = state
        context.plugin = state.contexts.get(req.env["svc.endpoint"].plugin_id)
        if context.plugin is None:
            raise NotFound("There is no such resource.")
    if context.caller is not None:
        context.caller = _identify(state, req, as_of_s)


class PermissionCheck:
    """Compares what the responder declares with what the caller may do."""

    def process_resource(
        self, req: SvcRequest, resp: falcon.Response, resource: BoundRoute, params: dict[str, Any]
    ) -> None:
        """Refuses what is not permitted."""
        endpoint: Endpoint = req.env["svc.endpoint"]
        if endpoint.is_public:
            return
        context = req.context
        caller = context.caller
        if caller is None:
            raise AuthRequired("This needs valid credentials.")
        _require_declared(context, caller, endpoint, params)


def _require_declared(
    context: RequestContext, caller: Caller, endpoint: Endpoint, params: dict[str, Any]
) -> None:
    if caller.is_unrestricted_root:
        return  # paths of the system namespace never come this far: see Routing
    access = endpoint.access
    if access.kind is AccessKind.ROOT:
        raise Forbidden("Only root may do this.")
    if (access.kind is AccessKind.ACCOUNT and caller.identity.user_id is None) or (
        not access.narrowed and caller.identity.hides_denials
    ):
        raise NotFound("There is no such resource.")
    if access.kind is AccessKind.SOMEWHERE:
        _require_somewhere(context, access.operations)
    if access.path_field is None:
        return
    path = params[access.path_field]
    needs_all = access.kind is AccessKind.ALL
    for operation in access.operations:
        # Whether a listing is of a directory on the way to what a key may see, the responder finds out.
        if context.may(operation, path, directory=operation is _LIST):
            if not needs_all:
                return
        elif needs_all:
            raise denial(caller.identity, operation, path)
    if not needs_all:
        raise denial(caller.identity, access.operations[0], path)


def _require_somewhere(context: RequestContext, operations: tuple[Operation, ...]) -> None:
    if context.may_somewhere(*operations):
        return
    if context.identity.hides_denials:
        raise hidden_path(())
    names = " or ".join(operation.name.lower() for operation in operations)
    raise Forbidden(f"This is for those who may {names} something, and you may not, anywhere.")


def forget_paths() -> None:
    """Forgets the paths that were parsed."""
    _path_of.cache_clear()


def request_id_of(environ: dict[str, Any]) -> str:
    """Returns the client's request id when it is well formed, else a new one."""
    given = environ.get("HTTP_X_REQUEST_ID")
    if given is not None and _WELL_FORMED_ID.fullmatch(given) and not holds_credential(environ, given):
        return str(given)
    return _PROCESS + hex(next(_numbers))[3:]


def credentials_of(req: SvcRequest, endpoint: Endpoint, as_of_s: float | None = None) -> Credentials:
    """Returns what a request to an endpoint says about its sender; ``as_of_s`` as ``Credentials`` has it."""
    env = req.env
    scheme: str | None = None
    value: str | None = None
    authorization = env.get("HTTP_AUTHORIZATION")
    if authorization:
        scheme, _, value = authorization.strip().partition(" ")
        scheme, value = scheme.lower(), value.strip()
    # By position: keywords cost time in every request.
    return Credentials(
        scheme,
        value,
        _query_token(req) if endpoint.query_token else None,
        req.context.client_address,
        env.get("wsgi.url_scheme") == "https",
        req.method,
        req.path,
        None,
        req.get_header,
        as_of_s,
    )


def _parse_paths(req: SvcRequest, endpoint: Endpoint, params: dict[str, Any]) -> None:
    if endpoint.prefix is not None:
        params.clear()
        params[endpoint.path_fields[0]] = req.path[len(endpoint.prefix) :]
    for name in endpoint.path_fields:
        text = params.get(name, "")
        params[name] = _path_of(text) if len(text) <= _SHORT_PATH else _path_of.__wrapped__(text)


@functools.lru_cache(maxsize=1024)
def _path_of(text: str) -> Path:
    path = parse_path(text)
    if is_system_path(path):
        # For every method, and before anybody is identified: nothing of the system can be seen here.
        raise hidden_path(path)
    return path


def _query_token(req: SvcRequest) -> str | None:
    """The query's ``token``, on the routes that take one: a browser's event source sets no headers."""
    if "token=" not in req.query_string:
        return None
    token = req.params.get("token")
    return token if isinstance(token, str) else None


def _shown(method: str) -> str:
    return method if method.isascii() and method.isalnum() and len(method) <= 32 else "this method"
