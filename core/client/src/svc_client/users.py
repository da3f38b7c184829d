"""Users, groups and grants of a server's database, and what they add up to. All of it is root's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from svc.errors import NotFound
from svc.paths import Path, format_path
from svc_client.models import Page
from svc_client.paging import all_items
from svc_client.transport import Transport

__all__ = ["Access", "AccessDecision", "AccessLevel", "Grant", "Group", "User", "Users"]

_PAGE = 1000


class User(Struct, frozen=True, kw_only=True):
    """A user; ``groups`` are named where one user was asked for."""

    user_id: str
    username: str
    email: str | None
    is_active: bool
    tags: list[str]
    created_at: int
    updated_at: int
    groups: list[str] | UnsetType = UNSET


class Group(Struct, frozen=True, kw_only=True):
    """A group with a page of the ids of its members; ``member_count`` says how many there are."""

    name: str
    members: list[str]
    member_count: int
    tags: list[str]
    created_at: int
    has_more: bool
    next_cursor: str | None


class Grant(Struct, frozen=True, kw_only=True):
    """What a group may do, and may not do, to a path and what is below it: 8 flag letters each."""

    grant_id: str
    path: str
    group: str
    allow: str
    deny: str
    path_pattern: str | None
    created_at: int
    created_by: str | None


class AccessGroup(Struct, frozen=True):
    """A group of a user, and why: ``self``, ``member`` or ``tag <tag>``."""

    group: str
    by: str


class AccessGrant(Struct, frozen=True):
    """A grant that has a say; ``applies`` is false where its pattern leaves the path out."""

    grant_id: str
    group: str
    allow: str
    deny: str
    path_pattern: str | None
    applies: bool


class AccessLevel(Struct, frozen=True):
    """A path at or above the one that was asked for, and the grants that hang on it."""

    path: str
    grants: list[AccessGrant]


class AccessDecision(Struct, frozen=True):
    """What came out for an operation, and which level, groups and grants decided."""

    operation: str
    flag: str
    allowed: bool
    level: str | None
    groups: list[str]
    grant_ids: list[str]
    reason: str


class Access(Struct, frozen=True):
    """What a user may do to a path, and why."""

    path: str
    user_id: str
    username: str
    is_active: bool
    is_root: bool
    permissions: str
    groups: list[AccessGroup]
    levels: list[AccessLevel]
    decisions: list[AccessDecision]


class _Deactivated(Struct):
    deactivated: Literal[True]


class _Deleted(Struct):
    deleted: Literal[True]


class _Users(Struct):
    users: list[User]
    next_cursor: str | None


class _Groups(Struct):
    groups: list[Group]
    next_cursor: str | None


class _Grants(Struct):
    grants: list[Grant]
    next_cursor: str | None


class Users:
    """``/system/users``, ``/system/groups``, ``/system/grants`` and ``/system/access``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    # Users

    def users(self, *, tag: str | None = None, is_active: bool | None = None) -> Iterator[User]:
        """Yields all users, or those who carry a tag, or who may sign in or not, by their ids."""
        active = None if is_active is None else str(is_active).lower()

        def page(after: str | None) -> Page[User]:
            query = _query(tag=tag, is_active=active, limit=_PAGE, after=after)
            found = self._transport.json("GET", "/system/users", _Users, query=query)
            return Page(found.users, found.next_cursor)

        return all_items(page)

    def user(self, user_id: str) -> User:
        """Returns one user, with the names of all groups."""
        return self._transport.json("GET", _named("users", user_id), User)

    def user_named(self, username: str) -> User:
        """Returns the user of a name, in any spelling of it.

        Raises:
            NotFound: there is none.
        """
        query = {"username": username}
        found = self._transport.json("GET", "/system/users", _Users, query=query).users
        if not found:
            raise NotFound("There is no user of this name.", username=username)
        return self.user(found[0].user_id)

    def create_user(
        self, username: str, *, email: str | None = None, tags: Iterable[str] = (), is_active: bool = True
    ) -> User:
        """Makes a user.

        Raises:
            AlreadyExists: the name is taken.
        """
        value = {"username": username, "email": email, "tags": list(tags), "is_active": is_active}
        return self._transport.json("POST", "/system/users", User, value=value)

    def change_user(self, user_id: str, **changes: Any) -> User:
        """Changes ``username``, ``email``, ``tags`` or ``is_active``; what is not named stays."""
        return self._transport.json("PATCH", _named("users", user_id), User, value=changes, repeatable=False)

    def deactivate_user(self, user_id: str) -> None:
        """Deactivates a user, whose tokens and keys stop at once."""
        self._transport.json("DELETE", _named("users", user_id), _Deactivated)

    # Groups

    def groups(self) -> Iterator[Group]:
        """Yields all groups, each with its first members."""

        def page(after: str | None) -> Page[Group]:
            query = _query(limit=_PAGE, after=after)
            found = self._transport.json("GET", "/system/groups", _Groups, query=query)
            return Page(found.groups, found.next_cursor)

        return all_items(page)

    def group(self, name: str, *, limit: int | None = None, after: str | None = None) -> Group:
        """Returns one group with a page of its members."""
        query = _query(limit=limit, after=after)
        return self._transport.json("GET", _named("groups", name), Group, query=query)

    def members(self, name: str) -> Iterator[str]:
        """Yields the ids of all members of a group."""

        def page(after: str | None) -> Page[str]:
            found = self.group(name, limit=_PAGE, after=after)
            return Page(found.members, found.next_cursor)

        return all_items(page)

    def create_group(self, name: str, *, members: Iterable[str] = (), tags: Iterable[str] = ()) -> Group:
        """Makes a group of users, by their ids, and of all who carry one of the tags.

        Raises:
            AlreadyExists: the name is taken.
        """
        value = {"name": name, "members": list(members), "tags": list(tags)}
        return self._transport.json("POST", "/system/groups", Group, value=value)

    def change_group(self, name: str, **changes: Any) -> Group:
        """Changes ``members`` or ``tags``, or does ``add_members`` and ``remove_members``."""
        return self._transport.json("PATCH", _named("groups", name), Group, value=changes, repeatable=False)

    def delete_group(self, name: str) -> None:
        """Deletes a group with its grants."""
        self._transport.json("DELETE", _named("groups", name), _Deleted)

    # Grants

    def grants(self, *, path: str | Path | None = None, group: str | None = None) -> Iterator[Grant]:
        """Yields all grants, or those on a path itself, or those of a group."""
        text = None if path is None else _text(path)

        def page(after: str | None) -> Page[Grant]:
            query = _query(path=text, group=group, limit=_PAGE, after=after)
            found = self._transport.json("GET", "/system/grants", _Grants, query=query)
            return Page(found.grants, found.next_cursor)

        return all_items(page)

    def grant(
        self,
        path: str | Path,
        group: str,
        *,
        allow: str = "--------",
        deny: str = "--------",
        path_pattern: str | None = None,
    ) -> tuple[Grant, bool]:
        """Makes a grant, or replaces that of the same group, path and pattern; says whether it is new."""
        value = {"path": _text(path), "group": group, "allow": allow, "deny": deny}
        if path_pattern is not None:
            value["path_pattern"] = path_pattern
        response = self._transport.request(
            "POST",
            "/system/grants",
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode(value),
        )
        return response.json(Grant), response.status == 201

    def ungrant(self, grant_id: str) -> Grant:
        """Takes a grant back and returns what it was."""
        return self._transport.json("DELETE", _named("grants", grant_id), Grant)

    def access(self, path: str | Path, user: str) -> Access:
        """Explains what a user, by id or name, may do to a path."""
        query = {"path": _text(path), "user": user}
        return self._transport.json("GET", "/system/access", Access, query=query)


def _named(kind: str, name: str) -> str:
    return f"/system/{kind}/{quote(name, safe='')}"


def _query(**values: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}


def _text(path: str | Path) -> str:
    return path if isinstance(path, str) else format_path(path)
