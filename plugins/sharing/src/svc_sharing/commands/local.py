"""Shares of a database file: whoever may write it is root."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from svc.errors import NotFound, UsageError
from svc.plugin import (
    ROOT_USER_ID,
    Database,
    Identity,
    Path,
    effective_permissions,
    format_path,
    read_settings,
)
from svc_sharing.commands.store import Document
from svc_sharing.configuration import SharingConfiguration
from svc_sharing.descriptor import PLUGIN
from svc_sharing.grants import NO_FLAGS, ShareRequest, list_shares, share, shared_with, unshare
from svc_sharing.links import LinkRequest, create_link, list_links, revoke_link
from svc_users.api import Grant, RightsCache, find_user, find_user_by_name, groups_of

__all__ = ["LocalShares"]

_PAGE = 1000


class LocalShares:
    """See ``ShareStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        settings = read_settings(PLUGIN, database)
        assert isinstance(settings, SharingConfiguration)
        self._settings = settings

    def share(self, request: ShareRequest, permissions: str) -> Document:
        """Shares paths with users and groups."""
        most = self._settings.share_grants
        return share(self._database, request, permissions, most=most, actor=ROOT_USER_ID)

    def unshare(self, request: ShareRequest) -> int:
        """Takes shares back."""
        most = self._settings.share_grants
        return int(unshare(self._database, request, most=most, actor=ROOT_USER_ID)["removed"])

    def shares(self, path: Path) -> Iterator[Document]:
        """The shares that hang on a path itself."""

        def page(after: str | None) -> tuple[list[Document], str | None]:
            found = list_shares(self._database, path, limit=_PAGE, after=after)
            return found.items, found.next_cursor

        return _all(page)

    def create_link(
        self, paths: Sequence[str], permissions: str, days: int | None, base_url: str | None
    ) -> Document:
        """Makes a link."""
        settings = self._settings
        request = LinkRequest(
            paths=paths,
            permissions=permissions,
            expires_in_days=settings.link_days if days is None else days,
            base_url=settings.base_url if base_url is None else base_url,
        )
        return create_link(self._database, request, most_paths=settings.link_paths, actor=ROOT_USER_ID)

    def links(self, path: Path | None) -> Iterator[Document]:
        """The links that work."""
        system = self._database.system()
        found = _all(lambda after: list_links(system, path, limit=_PAGE, after=after))
        return (msgspec.to_builtins(link) for link in found)

    def revoke_link(self, key_id: str) -> None:
        """Ends a link."""
        revoke_link(self._database, key_id, actor=ROOT_USER_ID)

    def shared_with(self, user: str | None) -> Iterator[Document]:
        """What is shared with a user."""
        if user is None:
            raise UsageError("A database file does not know who asks: say --as USER.", field="as")
        version, system = self._database.at(), self._database.system()
        found = find_user(system, user) or find_user_by_name(system, user)
        if found is None:
            raise NotFound("There is no user of this id or name.", field="as")
        groups = groups_of(system, found)
        rights = RightsCache(self._database).of(groups, system) if found.is_active else None
        identity = Identity(found.user_id, found.username, groups=groups, rights=rights)
        key = self._database.database_id

        def page(after: str | None) -> tuple[list[tuple[Path, Grant]], str | None]:
            return shared_with(groups, version, system, database_id=key, limit=_PAGE, after=after)

        for path, grant in _all(page):
            permissions = effective_permissions(identity, path)
            if permissions != NO_FLAGS:
                entry = version.get(path)
                yield {
                    "path": format_path(path),
                    "entry_type": None if entry is None else int(entry.kind),
                    "effective_permissions": permissions,
                    "permissions": grant.allow,
                    "group": grant.group,
                    "path_pattern": grant.path_pattern,
                    "shared_at": grant.created_at,
                    "shared_by": grant.created_by,
                }


def _all(page_of: Callable[[str | None], tuple[list[Any], str | None]]) -> Iterator[Any]:
    after: str | None = None
    while True:
        items, after = page_of(after)
        yield from items
        if after is None:
            return
