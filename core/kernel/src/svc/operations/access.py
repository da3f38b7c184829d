"""What an operation or a responder needs of who calls it, declared where it is defined.

The pipeline checks it before anything else happens. A responder without a declaration is refused when its
route is added.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from svc.plugins.contracts import Operation

__all__ = [
    "Access",
    "AccessKind",
    "ErrorPage",
    "accepts_query_token",
    "access_of",
    "error_page_of",
    "errors_as_page",
    "public",
    "requires",
    "requires_account",
    "requires_any",
    "requires_identity",
    "requires_in_body",
    "requires_root",
    "requires_somewhere",
    "takes_query_token",
]

F = TypeVar("F", bound=Callable[..., Any])

ACCESS_ATTRIBUTE = "__svc_access__"
_BY_QUERY = "__svc_token_by_query__"
_ERROR_PAGE = "__svc_error_page__"

ErrorPage = Callable[[Any, int], None]
"""Makes a response that reports an error a page for people; called with the response and the status."""


class AccessKind(Enum):
    """Who may call."""

    PUBLIC = "public"
    IDENTITY = "identity"
    ACCOUNT = "account"
    ROOT = "root"
    ALL = "all"
    ANY = "any"
    BODY = "body"
    SOMEWHERE = "somewhere"


class Access(Struct, frozen=True):
    """What a caller needs. As a decorator it declares this of a responder.

    ``operations`` are needed on the path in the template field ``path_field`` (``ALL``, ``ANY``), or on paths
    that are found in the request (``BODY``). One of them is enough, on any path, for ``SOMEWHERE``. What is
    not for ``narrowed`` callers does not exist for those whom a scoped key narrows to some paths.
    """

    kind: AccessKind
    operations: tuple[Operation, ...] = ()
    path_field: str | None = None
    narrowed: bool = True

    def __call__(self, responder: F) -> F:
        """Declares this of a responder."""
        setattr(responder, ACCESS_ATTRIBUTE, self)
        return responder


public = Access(AccessKind.PUBLIC)
"""Everyone may call; there is no identity."""

requires_identity = Access(AccessKind.IDENTITY)
"""Everyone who is authenticated may call."""

requires_account = Access(AccessKind.ACCOUNT)
"""Everyone who is a user may call. For the holder of a share link there is no such resource."""

requires_root = Access(AccessKind.ROOT)
"""Only root may call, and not by a scoped key."""


def requires(*operations: Operation, path: str) -> Access:
    """The caller needs all ``operations`` on the path that the template field ``path`` holds."""
    return Access(AccessKind.ALL, _some(operations), path)


def requires_any(*operations: Operation, path: str) -> Access:
    """The caller needs one of ``operations`` on the path of the route.

    For what learns from the present state which one it does, such as a PUT that creates or updates: once it
    knows, it calls ``authorize``.
    """
    return Access(AccessKind.ANY, _some(operations), path)


def requires_in_body(*operations: Operation) -> Access:
    """The caller needs ``operations`` on paths that stand in the body or the query.

    The pipeline asks for an identity; the operation calls ``authorize`` for every path.
    """
    return Access(AccessKind.BODY, _some(operations))


def requires_somewhere(*operations: Operation, narrowed: bool = True) -> Access:
    """The caller needs one of ``operations`` on some path, whichever and whether or not anything is there.

    For what belongs to no path yet. ``narrowed`` is false for what does not exist for a scoped key.
    """
    return Access(AccessKind.SOMEWHERE, _some(operations), narrowed=narrowed)


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
    access = getattr(responder, ACCESS_ATTRIBUTE, None)
    return access if isinstance(access, Access) else None


def _some(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    if not operations:
        raise TypeError("A declaration names at least one operation.")
    return operations
