"""What the commands ask of a database, in a file or a server; answers are the documents of the routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from svc.plugin import Path, Source
from svc_sharing.grants import ShareRequest

__all__ = ["Document", "ShareStore", "open_shares"]

PLUGIN_ID = "sharing"

Document = dict[str, Any]


class ShareStore(Protocol):
    """Shares and links of one database. Methods block and raise the errors of ``svc.errors``."""

    def share(self, request: ShareRequest, permissions: str) -> Document:
        """Shares paths with users and groups."""

    def unshare(self, request: ShareRequest) -> int:
        """Takes shares back; returns how many there were."""

    def shares(self, path: Path) -> Iterator[Document]:
        """The shares that hang on a path itself."""

    def create_link(
        self, paths: Sequence[str], permissions: str, days: int | None, base_url: str | None
    ) -> Document:
        """Makes a link; the answer has its key."""

    def links(self, path: Path | None) -> Iterator[Document]:
        """The links that work, oldest first."""

    def revoke_link(self, key_id: str) -> None:
        """Ends a link."""

    def shared_with(self, user: str | None) -> Iterator[Document]:
        """What is shared with a user of the file, or with the caller at the server."""


def open_shares(source: Source, *, read_only: bool = False) -> AbstractContextManager[ShareStore]:
    """Opens what a command works on, for as long as the context lasts; see ``Source.open_store``."""
    return source.open_store(
        PLUGIN_ID,
        local="svc_sharing.commands.local:LocalShares",
        remote="svc_sharing.commands.remote:RemoteShares",
        read_only=read_only,
    )
