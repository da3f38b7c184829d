"""Users, groups and grants of a database file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from svc.plugin import Database, KnownUser, Path
from svc_users.answers import grant_answer, group_answer, user_answer
from svc_users.changing import all_pages
from svc_users.commands.store import Document
from svc_users.explaining import explain_access
from svc_users.granting import grant, list_grants, ungrant
from svc_users.grants import require_group
from svc_users.groups import (
    GroupChange,
    change_group,
    create_group,
    delete_group,
    list_groups,
    require_named_group,
)
from svc_users.lookup import named_user
from svc_users.names import user_id_of
from svc_users.users import UserChange, UserFilter, change_user, create_user, list_users

__all__ = ["LocalUsers"]

_PAGE = 1000
_ALL = 1 << 40


class LocalUsers:
    """See ``UserStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def users(self, *, tag: str | None, is_active: bool | None) -> Iterator[Document]:
        """All users, or those who carry a tag, or who may sign in or not."""
        system = self._database.system()
        wanted = UserFilter(tag=tag, is_active=is_active)
        found = all_pages(lambda after: list_users(system, wanted, limit=_PAGE, after=after))
        return map(user_answer, found)

    def user(self, name_or_id: str) -> Document:
        """The user of a name or an id, with all groups."""
        system = self._database.system()
        return user_answer(named_user(system, name_or_id), system)

    def create_user(self, username: str, *, email: str | None, tags: Iterable[str]) -> Document:
        """Makes a user."""
        made = create_user(self._database, username, email=email, tags=tuple(tags))
        return user_answer(made, self._database.system())

    def change_user(self, name_or_id: str, changes: Document) -> Document:
        """Changes a user."""
        user_id = user_id_of(name_or_id) or named_user(self._database.system(), name_or_id).user_id
        changed = change_user(self._database, user_id, UserChange(**changes))
        return user_answer(changed, self._database.system())

    def groups(self) -> Iterator[Document]:
        """All groups, each with its first members."""
        system = self._database.system()
        for group in all_pages(lambda after: list_groups(system, limit=_PAGE, after=after)):
            yield group_answer(system, group)

    def group(self, name: str) -> Document:
        """A group with all its members."""
        system = self._database.system()
        return group_answer(system, require_named_group(system, name), limit=_ALL)

    def create_group(self, name: str, *, members: Iterable[str], tags: Iterable[str]) -> Document:
        """Makes a group of users, by their names or ids."""
        made = create_group(self._database, name, members=self._ids(members), tags=tuple(tags))
        return self.group(made.name)

    def change_group(
        self, name: str, *, tags: list[str] | None = None, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> Document:
        """Changes a group; users by their names or ids."""
        change = GroupChange(
            tags=UNSET if tags is None else tags,
            add_members=self._ids(add),
            remove_members=self._ids(remove),
        )
        return self.group(change_group(self._database, name, change).name)

    def delete_group(self, name: str) -> Document:
        """Deletes a group with its grants."""
        return {"deleted": True, "name": delete_group(self._database, name).name}

    def grants(self, *, path: Path | None, group: str | None) -> Iterator[Document]:
        """All grants, or those on a path itself, or those of a group."""
        system = self._database.system()
        stored = None if group is None else require_group(system, group, _anybody)
        found = all_pages(
            lambda after: list_grants(system, path=path, group=stored, limit=_PAGE, after=after)
        )
        return map(grant_answer, found)

    def grant(
        self, path: Path, group: str, allow: str, deny: str, pattern: str | None
    ) -> tuple[Document, bool]:
        """Makes or replaces a grant; says whether it is new."""
        made, is_new = grant(
            self._database, path, group, allow=allow, deny=deny, path_pattern=pattern, users=_anybody
        )
        return grant_answer(made), is_new

    def ungrant(self, grant_id: str) -> Document:
        """Takes a grant back."""
        return {"deleted": True, **grant_answer(ungrant(self._database, grant_id))}

    def access(self, path: Path, user: str) -> Document:
        """Explains what a user may do to a path."""
        explained: Document = msgspec.to_builtins(explain_access(self._database.system(), path, user))
        return explained

    def _ids(self, users: Iterable[str]) -> list[str]:
        system = self._database.system()
        return [named_user(system, one).user_id for one in users]


def _anybody(user_id: str) -> KnownUser:
    """Takes every id for a user's: which auth mode will serve the file is not known here."""
    return KnownUser(user_id, None)
