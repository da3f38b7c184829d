"""Users, groups and grants of a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from svc.plugin import Path
from svc_client import Client
from svc_client import User as ClientUser
from svc_users.commands.store import Document
from svc_users.names import user_id_of

__all__ = ["RemoteUsers"]


class RemoteUsers:
    """See ``UserStore``."""

    def __init__(self, client: Client) -> None:
        self._users = client.users

    def users(self, *, tag: str | None, is_active: bool | None) -> Iterator[Document]:
        """All users, or those who carry a tag, or who may sign in or not."""
        return map(_document, self._users.users(tag=tag, is_active=is_active))

    def user(self, name_or_id: str) -> Document:
        """The user of a name or an id, with all groups."""
        return _document(self._found(name_or_id))

    def create_user(self, username: str, *, email: str | None, tags: Iterable[str]) -> Document:
        """Makes a user."""
        return _document(self._users.create_user(username, email=email, tags=tags))

    def change_user(self, name_or_id: str, changes: Document) -> Document:
        """Changes a user."""
        return _document(self._users.change_user(self._id(name_or_id), **changes))

    def groups(self) -> Iterator[Document]:
        """All groups, each with its first members."""
        return map(_document, self._users.groups())

    def group(self, name: str) -> Document:
        """A group with all its members."""
        shown = _document(self._users.group(name))
        return {**shown, "members": list(self._users.members(name)), "has_more": False, "next_cursor": None}

    def create_group(self, name: str, *, members: Iterable[str], tags: Iterable[str]) -> Document:
        """Makes a group of users, by their names or ids."""
        return self.group(self._users.create_group(name, members=map(self._id, members), tags=tags).name)

    def change_group(
        self, name: str, *, tags: list[str] | None = None, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> Document:
        """Changes a group; users by their names or ids."""
        changes: dict[str, Any] = {"add_members": [self._id(one) for one in add]}
        changes["remove_members"] = [self._id(one) for one in remove]
        if tags is not None:
            changes["tags"] = tags
        return self.group(self._users.change_group(name, **changes).name)

    def delete_group(self, name: str) -> Document:
        """Deletes a group with its grants."""
        stored = self._users.group(name, limit=1).name
        self._users.delete_group(name)
        return {"deleted": True, "name": stored}

    def grants(self, *, path: Path | None, group: str | None) -> Iterator[Document]:
        """All grants, or those on a path itself, or those of a group."""
        return map(_document, self._users.grants(path=path, group=group))

    def grant(
        self, path: Path, group: str, allow: str, deny: str, pattern: str | None
    ) -> tuple[Document, bool]:
        """Makes or replaces a grant; says whether it is new."""
        made, is_new = self._users.grant(path, group, allow=allow, deny=deny, path_pattern=pattern)
        return _document(made), is_new

    def ungrant(self, grant_id: str) -> Document:
        """Takes a grant back."""
        return {"deleted": True, **_document(self._users.ungrant(grant_id))}

    def access(self, path: Path, user: str) -> Document:
        """Explains what a user may do to a path."""
        return _document(self._users.access(path, user))

    def _found(self, name_or_id: str) -> ClientUser:
        if user_id_of(name_or_id) is None:
            return self._users.user_named(name_or_id)
        return self._users.user(name_or_id)

    def _id(self, name_or_id: str) -> str:
        return user_id_of(name_or_id) or self._users.user_named(name_or_id).user_id


def _document(answer: msgspec.Struct) -> Document:
    document: Document = msgspec.to_builtins(answer)
    return document
