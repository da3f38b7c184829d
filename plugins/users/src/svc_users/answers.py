"""What routes and commands answer: users, groups and grants as JSON, each with every member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from svc.plugin import Version
from svc_users.changing import Page
from svc_users.groups import list_members, member_count
from svc_users.lookup import groups_of
from svc_users.records import Grant, Group, User

__all__ = ["LISTED_MEMBERS", "grant_answer", "group_answer", "page_answer", "user_answer"]

LISTED_MEMBERS = 100
"""Members of each group that a list of groups shows."""

Document = dict[str, Any]

T = TypeVar("T")


def page_answer(head: str, page: Page[T], answer: Callable[[T], Document]) -> Document:
    """Returns the answer that holds a page."""
    return {
        head: [answer(item) for item in page.items],
        "has_more": page.next_cursor is not None,
        "next_cursor": page.next_cursor,
    }


def user_answer(user: User, system: Version | None = None) -> Document:
    """Returns a user; with the names of the user's groups where a system tree is given."""
    answer: Document = {name: getattr(user, name) for name in User.__struct_fields__}
    answer["tags"] = list(user.tags)
    if system is not None:
        answer["groups"] = sorted(groups_of(system, user))
    return answer


def group_answer(
    system: Version, group: Group, *, limit: int = LISTED_MEMBERS, after: str | None = None
) -> Document:
    """Returns a group with a page of its members."""
    page = list_members(system, group, limit=limit, after=after)
    return {
        "name": group.name,
        "members": page.items,
        "member_count": member_count(system, group),
        "tags": list(group.tags),
        "created_at": group.created_at,
        "has_more": page.next_cursor is not None,
        "next_cursor": page.next_cursor,
    }


def grant_answer(grant: Grant) -> Document:
    """Returns a grant."""
    return {name: getattr(grant, name) for name in Grant.__struct_fields__}
