"""The list of groups, and the page of one with its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import Act, Answer, Message, Redirect, RootPage, Shown, Undo

from svc.plugin import parse_path
from svc_users.models import GrantQuery, GroupChange, NewGroup, PageQuery
from svc_users.operations import (
    change_group,
    create_group,
    delete_group,
    list_grants,
    list_groups,
    show_group,
)
from svc_users.portal.names_of_people import find_user_id, tags_of, user_name

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["GroupPage", "GroupsPage"]

ROWS = 100


class GroupsPage(RootPage):
    """All groups but users' own ones."""

    name: ClassVar[str] = "users.groups"
    path: ClassVar[str] = "groups"
    title: ClassVar[str] = "Groups"
    follows: ClassVar[str | None] = "users"

    def show(self, request: PortalRequest) -> Answer:
        """A part of the list."""
        after = request.query.get("after") or None
        page = request.call(list_groups, PageQuery(limit=ROWS, after=after))
        values = {
            "rows": [(one, request.url("users.group", name=one.name)) for one in page.groups],
            "next_url": request.url("users.groups", {"after": page.next_cursor}) if page.has_more else None,
            "here": request.url("users.groups"),
            "people_url": request.url("users"),
        }
        return Shown("groups.html", values)

    def acts(self) -> Mapping[str, Act]:
        """Makes a group."""
        return {"add": _add}


class GroupPage(RootPage):
    """One group: its members, the tags that make members, and its grants."""

    name: ClassVar[str] = "users.group"
    path: ClassVar[str] = "groups/{name}"
    title: ClassVar[str] = "Group"
    follows: ClassVar[str | None] = "users"

    def show(self, request: PortalRequest) -> Answer:
        """A part of its members."""
        after = request.query.get("after") or None
        group = request.call(show_group, request.fields["name"], PageQuery(limit=ROWS, after=after))
        granted = request.call(list_grants, GrantQuery(group=group.name, limit=ROWS))
        here = request.url("users.group", name=group.name)
        values = {
            "group": group,
            "members": [
                (one, user_name(request, one), request.url("users.one", user=one)) for one in group.members
            ],
            "next_url": request.url("users.group", {"after": group.next_cursor}, name=group.name)
            if group.has_more
            else None,
            "grants": [
                (one, request.url("users.access", path=parse_path(one.path))) for one in granted.grants
            ],
            "has_more_grants": granted.has_more,
            "here": here,
            "groups_url": request.url("users.groups"),
        }
        return Shown("group.html", values, title=group.name)

    def acts(self) -> Mapping[str, Act]:
        """Changes it, or deletes it with its grants."""
        return {"enter": _enter, "leave": _leave, "tags": _tags, "delete": _delete}


def _add(request: PortalRequest) -> Redirect:
    made = request.call(
        create_group, NewGroup(request.form.require("name"), tags=tags_of(request.form.get("tags")))
    )
    return Redirect(request.url("users.group", name=made.name), Message(f"Made the group {made.name}."))


def _enter(request: PortalRequest) -> Redirect:
    user_id = find_user_id(request, request.form.require("user"))
    return _changed(request, GroupChange(add_members=[user_id]), f"{user_name(request, user_id)} is in it.")


def _leave(request: PortalRequest) -> Redirect:
    user_id = request.form.require("user")
    undo = {"action": "enter", "user": user_id}
    text = f"{user_name(request, user_id)} is no member any more."
    return _changed(request, GroupChange(remove_members=[user_id]), text, undo)


def _tags(request: PortalRequest) -> Redirect:
    tags = tags_of(request.form.get("tags"))
    return _changed(request, GroupChange(tags=tags), "Changed the tags.")


def _delete(request: PortalRequest) -> Redirect:
    gone = request.call(delete_group, request.fields["name"])
    return Redirect(request.url("users.groups"), Message(f"Deleted the group {gone.name} with its grants."))


def _changed(
    request: PortalRequest, change: GroupChange, text: str, undo: dict[str, str] | None = None
) -> Redirect:
    name = request.call(change_group, request.fields["name"], change).name
    here = request.url("users.group", name=name)
    return Redirect(here, Message(text, None if undo is None else Undo(here, undo)))
