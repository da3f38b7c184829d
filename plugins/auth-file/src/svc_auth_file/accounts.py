"""The users of the file as accounts, with the groups that the file and the database give them."""

from __future__ import annotations

from svc.plugin import ROOT_USER_ID, Database
from svc_auth_file.format import FileUser
from svc_auth_file.source import UsersSource
from svc_auth_self.api import ROOT_ACCOUNT, Account
from svc_users.api import User, groups_of, identity_stamp

__all__ = ["FileAccounts"]


class FileAccounts:
    """Who the file names, and root. Nobody else: users of the database can't sign in. See ``Accounts``.

    Args:
        database: its groups and grants count for the users of the file too.
        source: the file.
    """

    def __init__(self, database: Database, source: UsersSource) -> None:
        self._database = database
        self._source = source
        # HEAD and the stamp there, together: one is never that of another moment than the other.
        self._seen: tuple[object, tuple[object, object]] = (None, (None, None))

    def find(self, user_id: str) -> Account | None:
        """Returns the account of an id."""
        if user_id == ROOT_USER_ID:
            return ROOT_ACCOUNT
        return self._account_of(self._source.current().by_id.get(user_id))

    def find_by_name(self, name: str) -> Account | None:
        """Returns the account of a username."""
        return self._account_of(self._source.current().named(name))

    def stamp(self) -> object:
        """A value for the file as it was last read, and for groups and grants as they are now."""
        users, head = self._source.current(), self._database.head()
        seen, stamp = self._seen
        if seen is not head or stamp[0] is not users:
            now = (users, identity_stamp(self._database.version_of(head.system_root)))
            # The same object while nothing changed: it is compared for every request.
            stamp = stamp if stamp == now else now
            self._seen = (head, stamp)
        return stamp

    def _account_of(self, user: FileUser | None) -> Account | None:
        if user is None:
            return None
        return Account(
            user_id=user.user_id,
            username=user.username,
            email=user.email,
            is_active=user.is_active,
            is_root=user.is_root,
            groups=user.groups | self._groups_in_database(user),
        )

    def _groups_in_database(self, user: FileUser) -> frozenset[str]:
        """The user's own group, and those that have the user as a member, by id or by a tag."""
        record = User(
            user_id=user.user_id, username=user.username, tags=user.tags, created_at=0, updated_at=0
        )
        return groups_of(self._database.system(), record)
