"""``/files/share``, ``/files/shares`` and ``/files/shared-with-me``: grants, as those who share see them."""

from __future__ import annotations

from typing import Any

import falcon
import msgspec

from svc.errors import InvalidInput
from svc.plugin import (
    Path,
    RequestContext,
    Version,
    context_of,
    format_path,
    parse_path,
    query_text,
    read_json,
    requires_identity,
    requires_root,
    send_json,
)
from svc_sharing.grants import NO_FLAGS, ShareRequest, list_shares, share, shared_with, unshare
from svc_sharing.resources import MAXIMUM_JSON, page_limit, settings_of
from svc_users.api import Grant

__all__ = ["MakeShareResource", "ShareBody", "SharedWithMeResource", "SharesResource", "UnshareBody"]


class ShareBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that shares."""

    paths: list[str]
    permissions: str
    users: list[str] = []
    groups: list[str] = []


class UnshareBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that takes shares back."""

    paths: list[str]
    users: list[str] = []
    groups: list[str] = []


class MakeShareResource:
    """Where shares are made."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Shares paths with users and groups, in one commit."""
        body = read_json(req, ShareBody, MAXIMUM_JSON)
        context = context_of(req)
        request = ShareRequest(body.paths, body.users, body.groups)
        made = share(
            context.database,
            request,
            body.permissions,
            most=settings_of(req).share_grants,
            actor=context.actor,
            users=context.auth_mode.find_user,
        )
        send_json(resp, made)


class SharesResource:
    """The shares of a path."""

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists those that hang on the path itself, in pages."""
        text = query_text(req, "path")
        if text is None:
            raise InvalidInput("The parameter path says whose shares are listed.", field="path")
        path = parse_path(text)
        after = query_text(req, "after")
        context = context_of(req)
        page = list_shares(
            context.database, path, limit=page_limit(req), after=after, users=context.auth_mode.find_user
        )
        answer = {"path": format_path(path), "shares": page.items}
        send_json(resp, {**answer, "has_more": page.next_cursor is not None, "next_cursor": page.next_cursor})

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Takes shares back, in one commit."""
        body = read_json(req, UnshareBody, MAXIMUM_JSON)
        context = context_of(req)
        request = ShareRequest(body.paths, body.users, body.groups)
        gone = unshare(
            context.database,
            request,
            most=settings_of(req).share_grants,
            actor=context.actor,
            users=context.auth_mode.find_user,
        )
        send_json(resp, gone)


class SharedWithMeResource:
    """What others have shared with the caller."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists the paths that grants of the caller's groups open, in pages."""
        context = context_of(req)
        version, system = context.version, context.database.system()
        found, cursor = shared_with(
            context.identity.groups,
            version,
            system,
            database_id=context.database.database_id,
            limit=page_limit(req),
            after=query_text(req, "after"),
            shows=lambda path: context.permissions(path) != NO_FLAGS,
        )
        items = [_item(context, version, path, grant) for path, grant in found]
        send_json(resp, {"items": items, "has_more": cursor is not None, "next_cursor": cursor})


def _item(context: RequestContext, version: Version, path: Path, grant: Grant) -> dict[str, Any]:
    entry = version.get(path)
    return {
        "path": format_path(path),
        "entry_type": None if entry is None else int(entry.kind),
        "effective_permissions": context.permissions(path),
        "permissions": grant.allow,
        "group": grant.group,
        "path_pattern": grant.path_pattern,
        "shared_at": grant.created_at,
        "shared_by": grant.created_by,
    }
