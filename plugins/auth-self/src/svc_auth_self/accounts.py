"""Whom a mode knows: accounts, and where they come from."""

from __future__ import annotations

from typing import Protocol

import msgspec

from svc.plugin import ROOT_USER_ID, Database
from svc_users.api import User, find_user, find_user_by_name, groups_of, identity_stamp, own_group

__all__ = ["ROOT_ACCOUNT", "Account", "Accounts", "DatabaseAccounts"]


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who may sign in.

    Attributes:
        user_id: UUID as text; the nil UUID is root.
        username: what logs and commits call them.
        email: where links are sent, if known.
        is_active: whether they may do anything now.
        is_root: whether they may do everything.
        groups: names of their groups, ``user:<id>`` among them.
    """

    user_id: str
    username: str
    email: str | None = None
    is_active: bool = True
    is_root: bool = False
    groups: frozenset[str] = frozenset()


ROOT_ACCOUNT = Account(
    user_id=ROOT_USER_ID, username="root", is_root=True, groups=frozenset((own_group(ROOT_USER_ID),))
)


class Accounts(Protocol):
    """The accounts of one database, by the mode that serves it. Safe in every thread; nothing blocks."""

    def find(self, user_id: str) -> Account | None:
        """Returns the account of an id; None when there is none. One that is not active is returned."""

    def find_by_name(self, name: str) -> Account | None:
        """Returns the account of a username, in any case; None when there is none."""

    def stamp(self) -> object:
        """Returns a value that is another one whenever an account or a grant may have changed.

        Called for every request: while nothing changed it should be the same object.
        """


class DatabaseAccounts:
    """The users that the database keeps, and root. See ``Accounts``.

    Attributes:
        follows_head: the stamp changes with HEAD only, so that it is not asked for while HEAD stays.
    """

    follows_head = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: tuple[object, object] = (None, ())

    def find(self, user_id: str) -> Account | None:
        """Returns the account of an id."""
        if user_id == ROOT_USER_ID:
            return ROOT_ACCOUNT
        return self._account_of(find_user(self._database.system(), user_id))

    def find_by_name(self, name: str) -> Account | None:
        """Returns the account of a username."""
        return self._account_of(find_user_by_name(self._database.system(), name))

    def stamp(self) -> object:
        """A value for the users, groups and grants as they are now."""
        head = self._database.head()
        seen, stamp = self._seen
        if seen is not head:
            now = identity_stamp(self._database.version_of(head.system_root))
            # The same object while nothing changed: whoever keeps it compares by identity first.
            stamp = stamp if stamp == now else now
            self._seen = (head, stamp)
        return stamp

    def _account_of(self, user: User | None) -> Account | None:
        if user is None:
            return None
        return Account(
            user_id=user.user_id,
            username=user.username,
            email=user.email,
            is_active=user.is_active,
            groups=groups_of(self._database.system(), user),
        )
