"""``/system/groups``: make, list, show, change, delete."""

from __future__ import annotations

from functools import partial

import falcon
import msgspec

from svc.plugin import context_of, query_text, read_json, requires_root, send_json
from svc_users.answers import group_answer, page_answer
from svc_users.groups import (
    GroupChange,
    change_group,
    create_group,
    delete_group,
    list_groups,
    require_named_group,
)
from svc_users.requests import DEFAULT_LIMIT, page_limit, settings_of

__all__ = ["GroupBody", "GroupResource", "GroupsResource"]


class GroupBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a group."""

    name: str
    members: list[str] = []
    tags: list[str] = []


class GroupsResource:
    """All groups; the own groups of users are not among them."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes one: 201."""
        settings = settings_of(req)
        body = read_json(req, GroupBody, settings.maximum_json)
        context = context_of(req)
        group = create_group(
            context.database,
            body.name,
            members=body.members,
            tags=body.tags,
            actor=context.actor,
            most_members=settings.maximum_members,
        )
        send_json(resp, group_answer(context.database.system(), group, limit=DEFAULT_LIMIT), 201)

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists them in pages, each with its first members."""
        system = context_of(req).database.system()
        page = list_groups(system, limit=page_limit(req), after=query_text(req, "after"))
        send_json(resp, page_answer("groups", page, partial(group_answer, system)))


class GroupResource:
    """One group."""

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Shows the group with a page of its members."""
        system = context_of(req).database.system()
        group = require_named_group(system, name)
        answer = group_answer(system, group, limit=page_limit(req), after=query_text(req, "after"))
        send_json(resp, answer)

    @requires_root
    def on_patch(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Changes what the body names."""
        settings = settings_of(req)
        change = read_json(req, GroupChange, settings.maximum_json)
        context = context_of(req)
        group = change_group(
            context.database, name, change, actor=context.actor, most_members=settings.maximum_members
        )
        send_json(resp, group_answer(context.database.system(), group, limit=DEFAULT_LIMIT))

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Deletes the group with its grants."""
        context = context_of(req)
        group = delete_group(context.database, name, actor=context.actor)
        send_json(resp, {"deleted": True, "name": group.name})
