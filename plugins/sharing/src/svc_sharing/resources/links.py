"""``/files/share-link`` and ``/files/share-links``: make, list and end links."""

from __future__ import annotations

import falcon
import msgspec

from svc.plugin import context_of, parse_path, query_text, read_json, requires_root, send_json
from svc_auth_self.api import token_mode
from svc_sharing.links import LinkRequest, create_link, list_links, revoke_link
from svc_sharing.resources import MAXIMUM_JSON, page_limit, settings_of

__all__ = ["LinkBody", "LinkResource", "LinksResource", "MakeLinkResource"]


class LinkBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a link."""

    paths: list[str]
    permissions: str = "-r--l---"
    expires_in_days: int | None = None
    base_url: str | None = None


class MakeLinkResource:
    """Where links are made."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes one: 201, and the only answer that ever holds its key."""
        body = read_json(req, LinkBody, MAXIMUM_JSON)
        context, settings = context_of(req), settings_of(req)
        token_mode(context)  # a link would open nothing with an auth mode that has no keys
        request = LinkRequest(
            paths=body.paths,
            permissions=body.permissions,
            expires_in_days=settings.link_days if body.expires_in_days is None else body.expires_in_days,
            base_url=settings.base_url if body.base_url is None else body.base_url,
        )
        made = create_link(context.database, request, most_paths=settings.link_paths, actor=context.actor)
        resp.set_header("Cache-Control", "no-store")
        send_json(resp, made, 201)


class LinksResource:
    """All links."""

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists those that work, oldest first, in pages: all, or those that name a path itself."""
        text = query_text(req, "path")
        links, cursor = list_links(
            context_of(req).database.system(),
            None if text is None else parse_path(text),
            limit=page_limit(req),
            after=query_text(req, "after"),
        )
        send_json(resp, {"links": links, "has_more": cursor is not None, "next_cursor": cursor})


class LinkResource:
    """One link."""

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response, key_id: str) -> None:
        """Ends it, and what was signed in by it."""
        context = context_of(req)
        revoked = revoke_link(context.database, key_id, actor=context.actor)
        send_json(resp, {"revoked": True, "key_id": revoked.key_id})
