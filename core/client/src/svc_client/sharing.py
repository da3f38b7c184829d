"""Shares with users and groups, and links that open without an account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from svc.confidential import Confidential
from svc.paths import Path, format_path
from svc_client.models import Page, Revoked
from svc_client.paging import all_items
from svc_client.transport import Transport

__all__ = ["NewShareLink", "Share", "ShareLink", "SharedPath", "Sharing"]

_PAGE = 1000


class Share(Struct, frozen=True, kw_only=True):
    """What a user (``user_id``, ``username``) or a ``group`` may do to a path, and who shared it."""

    grant_id: str
    path: str
    user_id: str | None
    username: str | None
    group: str | None
    permissions: str
    deny: str
    path_pattern: str | None
    created_at: int
    created_by: str | None


class SharedPath(Struct, frozen=True, kw_only=True):
    """A path that is shared with the caller, by the grant of a group, and what the caller may do to it."""

    path: str
    entry_type: int | None
    effective_permissions: str
    permissions: str
    group: str
    path_pattern: str | None
    shared_at: int
    shared_by: str | None


class ShareLink(Struct, frozen=True, kw_only=True):
    """A link that works."""

    key_id: str
    paths: list[str]
    permissions: str
    created_at: int
    created_by: str | None
    expires_at: int


class NewShareLink(Confidential, frozen=True, kw_only=True):
    """A link that was just made: ``url`` and ``token`` hold its key, which is not shown again."""

    shown = ("key_id", "paths")

    url: str
    token: str
    key_id: str
    permissions: str
    expires_at: int
    paths: list[str]


class _SharedWith(Struct):
    username: str


class _Shared(Struct):
    paths: list[str]
    users: list[_SharedWith]
    groups: list[str]


class _Unshared(Struct):
    removed: int


class _Shares(Struct):
    shares: list[Share]
    next_cursor: str | None


class _Items(Struct):
    items: list[SharedPath]
    next_cursor: str | None


class _Links(Struct):
    links: list[ShareLink]
    next_cursor: str | None


class Sharing:
    """``/files/share...``. All of it is root's but ``shared_with_me``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def share(
        self,
        paths: Iterable[str | Path],
        permissions: str,
        *,
        users: Iterable[str] = (),
        groups: Iterable[str] = (),
    ) -> dict[str, Any]:
        """Shares paths with users and groups, in one commit; who had a share there has the new one instead.

        Args:
            paths: what.
            permissions: 8 flag letters.
            users: ids or usernames.
            groups: names.
        """
        value = {**_named(paths, users, groups), "permissions": permissions}
        return self._transport.document("POST", "/files/share", _Shared, value=value)

    def unshare(
        self, paths: Iterable[str | Path], *, users: Iterable[str] = (), groups: Iterable[str] = ()
    ) -> int:
        """Takes shares back, in one commit; returns how many there were.

        Raises:
            NotFound: there was none.
        """
        value = _named(paths, users, groups)
        return self._transport.json("DELETE", "/files/shares", _Unshared, value=value).removed

    def shares(self, path: str | Path) -> Iterator[Share]:
        """Yields the shares that hang on a path itself."""

        def page(after: str | None) -> Page[Share]:
            query = _query(path=_text(path), after=after)
            found = self._transport.json("GET", "/files/shares", _Shares, query=query)
            return Page(found.shares, found.next_cursor)

        return all_items(page)

    def shared_with_me(self) -> Iterator[SharedPath]:
        """Yields what is shared with the caller."""

        def page(after: str | None) -> Page[SharedPath]:
            found = self._transport.json("GET", "/files/shared-with-me", _Items, query=_query(after=after))
            return Page(found.items, found.next_cursor)

        return all_items(page)

    def create_link(
        self,
        paths: Iterable[str | Path],
        *,
        permissions: str | None = None,
        expires_in_days: int | None = None,
        base_url: str | None = None,
    ) -> NewShareLink:
        """Makes a link that opens paths for whoever has it.

        Args:
            paths: what it opens.
            permissions: 8 flag letters; None: reading and listing.
            expires_in_days: 1 to 3650; None: what the server says.
            base_url: what its URL begins with; None: what the server says, or this server's address.
        """
        value: dict[str, Any] = {"paths": [_text(path) for path in paths]}
        given = {"permissions": permissions, "expires_in_days": expires_in_days, "base_url": base_url}
        value |= {name: member for name, member in given.items() if member is not None}
        made = self._transport.json("POST", "/files/share-link", NewShareLink, value=value)
        if made.url.startswith("/"):
            here = self._transport.address.url.rstrip("/")
            made = NewShareLink(**{**_members(made), "url": here + made.url})
        return made

    def links(self, path: str | Path | None = None) -> Iterator[ShareLink]:
        """Yields the links that work, oldest first: all, or those that name a path itself."""

        def page(after: str | None) -> Page[ShareLink]:
            query = _query(path=None if path is None else _text(path), after=after)
            found = self._transport.json("GET", "/files/share-links", _Links, query=query)
            return Page(found.links, found.next_cursor)

        return all_items(page)

    def revoke_link(self, key_id: str) -> None:
        """Ends a link; who opened it is out with the next request."""
        url = f"/files/share-links/{quote(key_id, safe='')}"
        self._transport.json("DELETE", url, Revoked)


def _members(made: NewShareLink) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def _named(paths: Iterable[str | Path], users: Iterable[str], groups: Iterable[str]) -> dict[str, Any]:
    return {"paths": [_text(path) for path in paths], "users": list(users), "groups": list(groups)}


def _query(**values: str | None) -> dict[str, str]:
    given = {name: value for name, value in values.items() if value is not None}
    return {**given, "limit": str(_PAGE)}


def _text(path: str | Path) -> str:
    return path if isinstance(path, str) else format_path(path)
