"""What the commands ask of a database, in a file or a server; answers are the documents of the routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from svc.plugin import Path, Source

__all__ = ["Document", "UserStore", "open_users"]

PLUGIN_ID = "users"

Document = dict[str, Any]


class UserStore(Protocol):
    """Users, groups and grants of one database. Methods block and raise the errors of ``svc.errors``."""

    def users(self, *, tag: str | None, is_active: bool | None) -> Iterator[Document]:
        """All users, or those who carry a tag, or who may sign in or not."""

    def user(self, name_or_id: str) -> Document:
        """The user of a name or an id, with all groups."""

    def create_user(self, username: str, *, email: str | None, tags: Iterable[str]) -> Document:
        """Makes a user."""

    def change_user(self, name_or_id: str, changes: Document) -> Document:
        """Changes a user."""

    def groups(self) -> Iterator[Document]:
        """All groups, each with its first members."""

    def group(self, name: str) -> Document:
        """A group with all its members."""

    def create_group(self, name: str, *, members: Iterable[str], tags: Iterable[str]) -> Document:
        """Makes a group of users, by their names or ids."""

    def change_group(
        self, name: str, *, tags: list[str] | None = None, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> Document:
        """Changes a group; users by their names or ids."""

    def delete_group(self, name: str) -> Document:
        """Deletes a group with its grants."""

    def grants(self, *, path: Path | None, group: str | None) -> Iterator[Document]:
        """All grants, or those on a path itself, or those of a group."""

    def grant(
        self, path: Path, group: str, allow: str, deny: str, pattern: str | None
    ) -> tuple[Document, bool]:
        """Makes or replaces a grant; says whether it is new."""

    def ungrant(self, grant_id: str) -> Document:
        """Takes a grant back."""

    def access(self, path: Path, user: str) -> Document:
        """Explains what a user may do to a path."""


def open_users(source: Source, *, read_only: bool = False) -> AbstractContextManager[UserStore]:
    """Opens what a command works on, for as long as the context lasts; see ``Source.open_store``."""
    return source.open_store(
        PLUGIN_ID,
        local="svc_users.commands.local:LocalUsers",
        remote="svc_users.commands.remote:RemoteUsers",
        read_only=read_only,
    )
