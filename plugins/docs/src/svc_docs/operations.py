"""The operations: pages and what belongs to them, for everybody who reaches the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svc.errors import NotFound, PreconditionFailed, RangeNotSatisfiable
from svc.plugin import Weight, operation, public

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = [
    "list_pages",
    "read_openapi",
    "redirect_to_front_page",
    "show_asset",
    "show_front_page",
    "show_request_page",
    "show_skill",
]

_ERRORS = (PreconditionFailed, RangeNotSatisfiable)
_HTML = ("", "text/html")
_TEXT = ("", "text/plain")


@operation(
    "GET",
    "/docs",
    public,
    status=308,
    weight=Weight.SMALL,
    responder="svc_docs.responders:redirect_to_front_page",
)
def redirect_to_front_page(call: Call) -> None:
    """Redirects to the documentation."""


@operation(
    "GET",
    "/docs/",
    public,
    errors=_ERRORS,
    weight=Weight.SMALL,
    media_types=_HTML,
    responder="svc_docs.responders:show_front_page",
)
def show_front_page(call: Call) -> bytes:
    """Shows the first page of the documentation."""


@operation(
    "GET",
    "/docs/api",
    public,
    errors=_ERRORS,
    weight=Weight.SMALL,
    media_types=_HTML,
    responder="svc_docs.responders:show_request_page",
)
def show_request_page(call: Call) -> bytes:
    """Shows a page with all operations of this server, which can try them."""


@operation(
    "GET",
    "/docs/openapi.json",
    public,
    errors=(PreconditionFailed,),
    weight=Weight.DEAR,
    responder="svc_docs.responders:read_openapi",
)
def read_openapi(call: Call) -> dict[str, Any]:
    """Describes every operation of this server in the form of OpenAPI 3.1."""
    from svc.plugin import describe_operations

    return describe_operations(call)


@operation(
    "GET",
    "/docs/SKILL.md",
    public,
    errors=_ERRORS,
    weight=Weight.SMALL,
    media_types=_TEXT,
    responder="svc_docs.responders:show_skill",
)
def show_skill(call: Call) -> bytes:
    """Reads a quick start for automated agents: all that one needs to use a server."""


@operation(
    "GET",
    "/docs/llms.txt",
    public,
    errors=_ERRORS,
    weight=Weight.SMALL,
    media_types=_TEXT,
    responder="svc_docs.responders:list_pages",
)
def list_pages(call: Call) -> bytes:
    """Lists the pages, each with one line about it, in the form of https://llmstxt.org."""


@operation(
    "GET",
    "/docs/{asset:text}",
    public,
    errors=(NotFound, *_ERRORS),
    weight=Weight.SMALL,
    media_types=("", "application/octet-stream"),
    responder="svc_docs.responders:show_asset",
)
def show_asset(call: Call, asset: str) -> bytes:
    """Reads a page, its source in Markdown (``.md``), or what pages load."""
