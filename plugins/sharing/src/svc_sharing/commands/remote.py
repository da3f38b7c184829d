"""Shares of a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from svc.errors import UsageError
from svc.plugin import Path
from svc_client import Client
from svc_sharing.commands.store import Document
from svc_sharing.grants import ShareRequest

__all__ = ["RemoteShares"]


class RemoteShares:
    """See ``ShareStore``."""

    def __init__(self, client: Client) -> None:
        self._sharing = client.sharing

    def share(self, request: ShareRequest, permissions: str) -> Document:
        """Shares paths with users and groups."""
        users, groups = request.users, request.groups
        return self._sharing.share(request.paths, permissions, users=users, groups=groups)

    def unshare(self, request: ShareRequest) -> int:
        """Takes shares back."""
        return self._sharing.unshare(request.paths, users=request.users, groups=request.groups)

    def shares(self, path: Path) -> Iterator[Document]:
        """The shares that hang on a path itself."""
        return map(_document, self._sharing.shares(path))

    def create_link(
        self, paths: Sequence[str], permissions: str, days: int | None, base_url: str | None
    ) -> Document:
        """Makes a link."""
        made = self._sharing.create_link(
            paths, permissions=permissions, expires_in_days=days, base_url=base_url
        )
        return _document(made)

    def links(self, path: Path | None) -> Iterator[Document]:
        """The links that work."""
        return map(_document, self._sharing.links(path))

    def revoke_link(self, key_id: str) -> None:
        """Ends a link."""
        self._sharing.revoke_link(key_id)

    def shared_with(self, user: str | None) -> Iterator[Document]:
        """What is shared with the caller."""
        if user is not None:
            raise UsageError("--as is for a database file; a server knows who asks.", field="as")
        return map(_document, self._sharing.shared_with_me())


def _document(answer: msgspec.Struct) -> Document:
    document: Document = msgspec.to_builtins(answer)
    return document
