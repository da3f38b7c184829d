"""``/system/grants``: grant, list, take back."""

from __future__ import annotations

import falcon
import msgspec

from svc.plugin import context_of, parse_path, query_text, read_json, requires_root, send_json
from svc_users.answers import grant_answer, page_answer
from svc_users.granting import grant, list_grants, require_grant, ungrant
from svc_users.grants import require_group
from svc_users.records import NO_FLAGS
from svc_users.requests import page_limit, settings_of

__all__ = ["GrantBody", "GrantResource", "GrantsResource"]


class GrantBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes or replaces a grant."""

    path: str
    group: str
    allow: str = NO_FLAGS
    deny: str = NO_FLAGS
    path_pattern: str | None = None


class GrantsResource:
    """All grants."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes one: 201, or 200 when it replaces that of the same group, path and pattern."""
        body = read_json(req, GrantBody, settings_of(req).maximum_json)
        context = context_of(req)
        made, is_new = grant(
            context.database,
            parse_path(body.path),
            body.group,
            allow=body.allow,
            deny=body.deny,
            path_pattern=body.path_pattern,
            actor=context.actor,
            users=context.auth_mode.find_user,
        )
        send_json(resp, grant_answer(made), 201 if is_new else 200)

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists them in pages: those on a path, those of a group, or all."""
        context = context_of(req)
        system, users = context.database.system(), context.auth_mode.find_user
        path, group = query_text(req, "path"), query_text(req, "group")
        page = list_grants(
            system,
            path=None if path is None else parse_path(path),
            group=None if group is None else require_group(system, group, users),
            limit=page_limit(req),
            after=query_text(req, "after"),
            scanned=settings_of(req).scanned,
        )
        send_json(resp, page_answer("grants", page, grant_answer))


class GrantResource:
    """One grant."""

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response, grant_id: str) -> None:
        """Shows it."""
        send_json(resp, grant_answer(require_grant(context_of(req).database.system(), grant_id)))

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response, grant_id: str) -> None:
        """Takes it back."""
        context = context_of(req)
        gone = ungrant(context.database, grant_id, actor=context.actor)
        send_json(resp, {"deleted": True, **grant_answer(gone)})
