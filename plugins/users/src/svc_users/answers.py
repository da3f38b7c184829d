"""From records to what operations answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from svc.plugin import ROOT_USER_ID, Version
from svc_users.changing import Page as Part
from svc_users.groups import list_members, member_count
from svc_users.lookup import find_user, groups_of
from svc_users.models import DeletedGrant, Grant, Group, PageQuery, User
from svc_users.names import ROOT_NAME, own_group, user_of_own_group
from svc_users.records import Grant as GrantRecord
from svc_users.records import Group as GroupRecord
from svc_users.records import User as UserRecord

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["deleted_grant", "grant_answer", "group_answer", "page_answer", "user_answer"]

_FIRST_MEMBERS = PageQuery(limit=100)
"""Members of each group that a list of groups shows."""

A = TypeVar("A")
T = TypeVar("T")


def page_answer(form: Callable[..., A], part: Part[T], answer: Callable[[T], Any]) -> A:
    """Returns the answer that holds a part of a list."""
    items = [answer(item) for item in part.items]
    return form(items, has_more=part.next_cursor is not None, next_cursor=part.next_cursor)


def user_answer(user: UserRecord, system: Version | None = None) -> User:
    """Returns a user; with the names of the user's groups where a system tree is given."""
    groups = UNSET if system is None else sorted(groups_of(system, user))
    return User(**{**msgspec.structs.asdict(user), "tags": list(user.tags)}, groups=groups)


def group_answer(system: Version, group: GroupRecord, query: PageQuery = _FIRST_MEMBERS) -> Group:
    """Returns a group with a part of its members."""
    part = list_members(system, group, limit=query.limit, after=query.after)
    return Group(
        name=group.name,
        members=part.items,
        member_count=member_count(system, group),
        tags=list(group.tags),
        created_at=group.created_at,
        has_more=part.next_cursor is not None,
        next_cursor=part.next_cursor,
    )


def own_group_answer(user: UserRecord) -> Group:
    """Returns the group ``user:<id>``, which every user is without its being made."""
    return Group(
        name=own_group(user.user_id),
        members=[user.user_id],
        member_count=1,
        tags=[],
        created_at=user.created_at,
        has_more=False,
        next_cursor=None,
    )


def grant_answer(call: Call, grant: GrantRecord) -> Grant:
    """Returns a grant, with the names of the users in it."""
    return Grant(**msgspec.structs.asdict(grant), **_names_in(call, grant))


def deleted_grant(call: Call, grant: GrantRecord) -> DeletedGrant:
    """Returns a grant that was taken back."""
    return DeletedGrant(deleted=True, **msgspec.structs.asdict(grant), **_names_in(call, grant))


def _names_in(call: Call, grant: GrantRecord) -> dict[str, Any]:
    system = call.database.system()

    def name(user_id: str | None) -> str | None:
        if user_id is None or user_id == ROOT_USER_ID:
            return user_id and ROOT_NAME
        user = find_user(system, user_id)
        if user is not None:
            return user.username
        known = call.find_user(user_id)
        return None if known is None else known.name

    return {"username": name(user_of_own_group(grant.group)), "created_by_name": name(grant.created_by)}
