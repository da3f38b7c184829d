"""The operations on shares and links, and the pages that a link opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import AuthRequired, Conflict, Forbidden, NotFound, PayloadTooLarge, RateLimited
from svc.plugin import (
    Operation,
    Path,
    Weight,
    operation,
    parse_path,
    public,
    requires_any,
    requires_identity,
    requires_root,
)
from svc_sharing.models import (
    EndedShares,
    LinkKey,
    LinkPage,
    LinkQuery,
    NewLink,
    NewShareLink,
    NewShares,
    OldShares,
    OpenedLink,
    PageQuery,
    RevokedLink,
    SharedFilesQuery,
    SharedPathPage,
    SharedPaths,
    SharePage,
    ShareQuery,
)

if TYPE_CHECKING:
    from svc.plugin import Call
    from svc_users.api import UserLookup

__all__ = [
    "create_link",
    "end_shares",
    "list_links",
    "list_shared_with_me",
    "list_shares",
    "open_link",
    "revoke_link",
    "share_paths",
    "show_first_page",
    "show_shared_path",
]

MOST_JSON = 4 * 1024 * 1024
_HTML = ("application/octet-stream", "text/html")


@operation(
    "POST",
    "/files/share",
    requires_root,
    errors=(NotFound, PayloadTooLarge),
    weight=Weight.DEAR,
    maximum_body=MOST_JSON,
)
def share_paths(call: Call, body: NewShares) -> SharedPaths:
    """Shares paths with users and groups, in one commit; who had a share there has the new one instead."""
    from svc_sharing import grants

    most, actor = call.configuration.share_grants, call.identity.user_id
    return grants.share(call.database, body, most=most, actor=actor, users=_lookup(call))


@operation("GET", "/files/shares", requires_root, weight=Weight.DEAR)
def list_shares(call: Call, query: ShareQuery) -> SharePage:
    """Lists the shares that hang on a path itself."""
    from svc_sharing import grants

    path = parse_path(query.path)
    return grants.list_shares(call.database, path, limit=query.limit, after=query.after, users=_lookup(call))


@operation(
    "DELETE",
    "/files/shares",
    requires_root,
    errors=(NotFound, PayloadTooLarge),
    weight=Weight.DEAR,
    maximum_body=MOST_JSON,
)
def end_shares(call: Call, body: OldShares) -> EndedShares:
    """Takes shares back, in one commit."""
    from svc_sharing import grants

    most, actor = call.configuration.share_grants, call.identity.user_id
    return grants.unshare(call.database, body, most=most, actor=actor, users=_lookup(call))


@operation("GET", "/files/shared-with-me", requires_identity, weight=Weight.DEAR)
def list_shared_with_me(call: Call, query: PageQuery = PageQuery()) -> SharedPathPage:
    """Lists the paths that grants of the caller's groups open to the caller."""
    from svc_sharing import grants

    return grants.shared_with(
        call.identity.groups,
        call.database,
        call.version,
        permissions_of=call.permissions,
        limit=query.limit,
        after=query.after,
    )


@operation(
    "POST",
    "/files/share-link",
    requires_root,
    status=201,
    errors=(Conflict, NotFound, PayloadTooLarge),
    weight=Weight.DEAR,
    cache="no-store",
    maximum_body=MOST_JSON,
)
def create_link(call: Call, body: NewLink) -> NewShareLink:
    """Makes a link that opens paths to everyone who has it; no other answer ever holds its key."""
    from svc_auth_self.api import token_mode
    from svc_sharing import links

    if call.is_served:
        token_mode(call)  # a link would open nothing with an auth mode that has no keys
    return links.create_link(call.database, body, call.configuration, actor=call.identity.user_id)


@operation("GET", "/files/share-links", requires_root, weight=Weight.DEAR)
def list_links(call: Call, query: LinkQuery = LinkQuery()) -> LinkPage:
    """Lists the links that work, oldest first."""
    from svc_sharing import links

    path = None if query.path is None else parse_path(query.path)
    found, cursor = links.list_links(call.database.system(), path, limit=query.limit, after=query.after)
    return LinkPage([*found], has_more=cursor is not None, next_cursor=cursor)


@operation("DELETE", "/files/share-links/{key_id}", requires_root, errors=(NotFound,), weight=Weight.SMALL)
def revoke_link(call: Call, key_id: str) -> RevokedLink:
    """Ends a link; everyone whom it has signed in is out with the next request."""
    from svc_sharing import links

    return RevokedLink(True, links.revoke_link(call.database, key_id, actor=call.identity.user_id).key_id)


@operation(
    "GET",
    "/share",
    public,
    weight=Weight.SMALL,
    media_types=_HTML,
    responder="svc_sharing.responders:show_first_page",
)
def show_first_page(call: Call) -> bytes:
    """Shows the first page of every link, whose script sends the key to ``/share/session``."""


@operation(
    "POST",
    "/share/session",
    public,
    errors=(AuthRequired, Conflict, Forbidden, RateLimited),
    weight=Weight.SMALL,
    cache="no-store",
    responder="svc_sharing.responders:open_link",
)
def open_link(call: Call, body: LinkKey) -> OpenedLink:
    """Exchanges the key of a link for a cookie, which is for the pages below ``/share`` and reading alone."""


@operation(
    "GET",
    "/share/files/{path:path}",
    requires_any(Operation.READ, Operation.LIST, path="path"),
    weight=Weight.STREAMING,
    media_types=_HTML,
    responder="svc_sharing.responders:show_shared_path",
)
def show_shared_path(call: Call, path: Path, query: SharedFilesQuery = SharedFilesQuery()) -> bytes:
    """Shows what is behind a link: a directory as a page, a file as it is."""


def _lookup(call: Call) -> UserLookup | None:
    """Finds users of the auth mode; a file has none, only its own users."""
    return call.find_user if call.is_served else None
