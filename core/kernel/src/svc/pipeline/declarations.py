"""What a responder needs, declared where it is defined: the pipeline checks it before the responder runs.

A responder without a declaration is refused when its route is added.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

import falcon
from msgspec import Struct

from svc.plugins.contracts import Operation

__all__ = [
    "Access",
    "AccessKind",
    "accepts_query_token",
    "access_of",
    "error_page_of",
    "errors_as_page",
    "public",
    "requires",
    "requires_any",
    "requires_identity",
    "requires_in_body",
    "requires_root",
    "requires_somewhere",
    "takes_query_token",
]

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = "__svc_access__"
_BY_QUERY = "__svc_token_by_query__"
_ERROR_PAGE = "__svc_error_page__"

ErrorPage = Callable[[falcon.Response, int], None]
"""Makes a response that reports an error a page for people; called with the response and the status."""


class AccessKind(Enum):
    """Who may call a responder."""

    PUBLIC = "public"
    IDENTITY = "identity"
    ROOT = "root"
    ALL = "all"
    ANY = "any"
    BODY = "body"
    SOMEWHERE = "somewhere"


class Access(Struct, frozen=True):
    """The declaration of one responder.

    ``operations`` are needed on the path in the template field ``path_field`` (``ALL``, ``ANY``), or on paths
    that the responder finds in the request (``BODY``). One of them is enough, on any path, for ``SOMEWHERE``.
    """

    kind: AccessKind
    operations: tuple[Operation, ...] = ()
    path_field: str | None = None


def requires(*operations: Operation, path: str) -> Callable[[F], F]:
    """The caller needs all ``operations`` on the path that the template field ``path`` holds."""
    return _declaring(Access(AccessKind.ALL, _some(operations), path))


def requires_any(*operations: Operation, path: str) -> Callable[[F], F]:
    """The caller needs one of ``operations`` on the path of the route.

    For responders that learn from the present state which one they do, such as a PUT that creates or
    updates: once they know, they call ``context.authorize``.
    """
    return _declaring(Access(AccessKind.ANY, _some(operations), path))


def requires_in_body(*operations: Operation) -> Callable[[F], F]:
    """The caller needs ``operations`` on paths that stand in the body or the query.

    The pipeline asks for an identity; the responder calls ``context.authorize`` for every path.
    """
    return _declaring(Access(AccessKind.BODY, _some(operations)))


def requires_somewhere(*operations: Operation) -> Callable[[F], F]:
    """The caller needs one of ``operations`` on some path, whichever and whether or not anything is there.

    For responders that store what belongs to no path yet.
    """
    return _declaring(Access(AccessKind.SOMEWHERE, _some(operations)))


def requires_root(responder: F) -> F:
    """Only root may call the responder, and not by a scoped key."""
    return _declaring(Access(AccessKind.ROOT))(responder)


def requires_identity(responder: F) -> F:
    """Everyone who is authenticated may call the responder."""
    return _declaring(Access(AccessKind.IDENTITY))(responder)


def public(responder: F) -> F:
    """Everyone may call the responder; ``context.identity`` is None in it."""
    return _declaring(Access(AccessKind.PUBLIC))(responder)


def accepts_query_token(responder: F) -> F:
    """The route also takes its token as the query parameter ``token``, for event streams in browsers."""
    setattr(responder, _BY_QUERY, True)
    return responder


def takes_query_token(responder: Callable[..., Any]) -> bool:
    """Whether a responder was declared by ``accepts_query_token``."""
    return bool(getattr(responder, _BY_QUERY, False))


def errors_as_page(fill: ErrorPage) -> Callable[[F], F]:
    """Those who ask the responder for HTML get its errors as a page, also the pipeline's; all others JSON.

    Args:
        fill: gets the response, whose status is set, and the status; puts the page and its header fields in.
    """

    def declare(responder: F) -> F:
        setattr(responder, _ERROR_PAGE, fill)
        return responder

    return declare


def error_page_of(responder: Callable[..., Any]) -> ErrorPage | None:
    """Returns what makes pages of the errors of a responder; None when they are JSON."""
    page: ErrorPage | None = getattr(responder, _ERROR_PAGE, None)
    return page


def access_of(responder: Callable[..., Any]) -> Access | None:
    """Returns what a responder declares, or None when it declares nothing."""
    access = getattr(responder, _ATTRIBUTE, None)
    return access if isinstance(access, Access) else None


def _some(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    if not operations:
        raise TypeError("A declaration names at least one operation.")
    return operations


def _declaring(access: Access) -> Callable[[F], F]:
    def declare(responder: F) -> F:
        setattr(responder, _ATTRIBUTE, access)
        return responder

    return declare
