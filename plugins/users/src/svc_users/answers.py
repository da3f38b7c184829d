"""From records to what operations answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from svc.plugin import Version
from svc_users.changing import Page as Part
from svc_users.groups import list_members, member_count
from svc_users.lookup import groups_of
from svc_users.models import DeletedGrant, Grant, Group, PageQuery, User
from svc_users.records import Grant as GrantRecord
from svc_users.records import Group as GroupRecord
from svc_users.records import User as UserRecord

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


def grant_answer(grant: GrantRecord) -> Grant:
    """Returns a grant."""
    return Grant(**msgspec.structs.asdict(grant))


def deleted_grant(grant: GrantRecord) -> DeletedGrant:
    """Returns a grant that was taken back."""
    return DeletedGrant(deleted=True, **msgspec.structs.asdict(grant))
