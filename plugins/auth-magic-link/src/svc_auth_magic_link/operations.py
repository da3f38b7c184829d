"""The operations on links that sign in: ask for one, and use the code in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import AuthRequired, Conflict, RateLimited
from svc.plugin import Weight, operation, public
from svc_auth_magic_link.models import Asked, CodeQuery, LinkRequest, Verified

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["request_link", "use_link"]


@operation(
    "POST",
    "/auth/magic-link",
    public,
    errors=(Conflict, RateLimited),
    weight=Weight.SMALL,
    cache="no-store",
    maximum_body=16 * 1024,
)
def request_link(call: Call, body: LinkRequest) -> Asked:
    """Mails a link that signs in to an active user; the answer is the same for every address."""
    from svc_auth_magic_link import asking

    return Asked(asking.ask(call, call.configuration, body.email))


@operation(
    "GET",
    "/auth/magic-link/verify",
    public,
    errors=(AuthRequired, Conflict),
    weight=Weight.SMALL,
    cache="no-store",
    media_types=("application/json", "text/html"),
    responder="svc_auth_magic_link.responders:use_link",
    repeatable=False,
    reads=False,
)
def use_link(call: Call, query: CodeQuery) -> Verified | bytes:
    """Signs the user of a code in, once. A browser is shown a page first, so that no scanner uses it up."""
