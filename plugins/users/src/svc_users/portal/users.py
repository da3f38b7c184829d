"""The list of users, and the page of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import Act, Answer, Message, Redirect, RootPage, Shown, Undo

from svc.plugin import parse_path
from svc_users.models import GrantQuery, NewUser, UserChange, UserQuery
from svc_users.names import own_group
from svc_users.operations import (
    change_user,
    create_user,
    deactivate_user,
    list_grants,
    list_users,
    show_user,
)
from svc_users.portal.names_of_people import tags_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["UserPage", "UsersPage"]

ROWS = 100


class UsersPage(RootPage):
    """All users, or those of a name or tag."""

    name: ClassVar[str] = "users"
    path: ClassVar[str] = "people"
    title: ClassVar[str] = "People"
    place: ClassVar[int | None] = 50

    def show(self, request: PortalRequest) -> Answer:
        """A part of the list."""
        username, tag = request.query.get("name").strip(), request.query.get("tag").strip()
        query = UserQuery(
            username=username or None, tag=tag or None, limit=ROWS, after=request.query.get("after") or None
        )
        page = request.call(list_users, query)
        said = {"name": username, "tag": tag}
        values = {
            **said,
            "rows": [(one, request.url("users.one", user=one.user_id)) for one in page.users],
            "next_url": request.url("users", {**said, "after": page.next_cursor}) if page.has_more else None,
            "first_url": request.url("users", said) if query.after else None,
            "here": request.url("users"),
            "groups_url": request.url("users.groups"),
        }
        return Shown("users.html", values)

    def acts(self) -> Mapping[str, Act]:
        """Makes a user."""
        return {"add": _add}


class UserPage(RootPage):
    """One user, with groups and grants."""

    name: ClassVar[str] = "users.one"
    path: ClassVar[str] = "people/{user}"
    title: ClassVar[str] = "User"
    follows: ClassVar[str | None] = "users"

    def show(self, request: PortalRequest) -> Answer:
        """What is known of the user, to be changed."""
        user = request.call(show_user, request.fields["user"])
        own = own_group(user.user_id)
        granted = request.call(list_grants, GrantQuery(group=own, limit=ROWS))
        values = {
            "user": user,
            "see_url": request.url("users.see", user=user.user_id, path=()),
            "groups": [
                (name, request.url("users.group", name=name)) for name in user.groups or () if name != own
            ],
            "grants": [(one, _access_url(request, one.path)) for one in granted.grants],
            "has_more": granted.has_more,
            "here": request.url("users.one", user=user.user_id),
            "people_url": request.url("users"),
        }
        return Shown("user.html", values, title=user.username)

    def acts(self) -> Mapping[str, Act]:
        """Changes the user."""
        return {"change": _change, "deactivate": _deactivate, "activate": _activate}


def _add(request: PortalRequest) -> Redirect:
    form = request.form
    body = NewUser(form.require("username"), form.get("email") or None, tags_of(form.get("tags")))
    made = request.call(create_user, body)
    return Redirect(
        request.url("users.one", user=made.user_id),
        Message(f"Made the user {made.username}. To sign in, a user needs a key, or what else the mode has."),
    )


def _change(request: PortalRequest) -> Redirect:
    form = request.form
    change = UserChange(
        username=form.require("username"),
        email=form.get("email") or None,
        tags=tags_of(form.get("tags")),
    )
    changed = request.call(change_user, request.fields["user"], change)
    return Redirect(request.url("users.one", user=changed.user_id), Message(f"Changed {changed.username}."))


def _deactivate(request: PortalRequest) -> Redirect:
    gone = request.call(deactivate_user, request.fields["user"])
    here = request.url("users.one", user=gone.user_id)
    text = f"{gone.username} may not sign in any more."
    return Redirect(here, Message(text, Undo(here, {"action": "activate"})))


def _activate(request: PortalRequest) -> Redirect:
    changed = request.call(change_user, request.fields["user"], UserChange(is_active=True))
    here = request.url("users.one", user=changed.user_id)
    text = f"{changed.username} may sign in."
    return Redirect(here, Message(text, Undo(here, {"action": "deactivate"})))


def _access_url(request: PortalRequest, path: str) -> str:
    return request.url("users.access", path=parse_path(path))
