"""The auth mode ``file``: users and keys that a file names, with the tokens of self-contained mode."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterable
from typing import ClassVar

from svc.errors import UsageError
from svc.plugin import AuthContext, Database
from svc_auth_file.accounts import FileAccounts
from svc_auth_file.copies import copy_of
from svc_auth_file.format import FileKey, UsersFile
from svc_auth_file.keys import hash_of_key
from svc_auth_file.source import UsersSource, read_users
from svc_auth_self.api import KeyMatch, TokenAuthMode

__all__ = ["FileAuthMode", "source_of", "stop_source"]

_sources: weakref.WeakKeyDictionary[Database, UsersSource] = weakref.WeakKeyDictionary()


class FileAuthMode(TokenAuthMode):
    """Users of a file. Their keys are in the file too; further keys of theirs may be in the database."""

    name: ClassVar[str] = "file"
    takes_argument: ClassVar[bool] = True

    _source: UsersSource

    def prepare(self, context: AuthContext) -> Iterable[str]:
        """Checks the file, and makes the root key of a new database, which is printed this once.

        Raises:
            UsageError: no file is named.
            InvalidInput: it can't be used.
        """
        read_users(_path_of(context))
        return super().prepare(context)

    def verify_root_key(self, context: AuthContext, key: str) -> bool | None:
        """Says whether a key lets its bearer do everything: root's, or of a user whom the file calls root."""
        if context.argument:
            users = read_users(_path_of(context))
            found = _good_key(users, key)
            if found is not None:
                owner = users.by_id[found.user_id]
                return owner.is_root and owner.is_active and not found.rules
        return super().verify_root_key(context, key)

    def make_accounts(self, context: AuthContext) -> FileAccounts:
        """The users of the file, and root."""
        path = _path_of(context)
        self._source = UsersSource(path, copy_of(context.database.state_directory, path))
        stop_source(context.database)
        _sources[context.database] = self._source
        self._source.follow()
        return FileAccounts(context.database, self._source)

    def match_key(self, text: str) -> KeyMatch | None:
        """Returns a key of the file, or else of the database, if it is good now."""
        found = _good_key(self._source.current(), text)
        return super().match_key(text) if found is None else _match(found)

    def find_match(self, key_id: str) -> KeyMatch | None:
        """Returns a key of the file, or else of the database, by its id, if it is good now."""
        found = self._source.current().key_by_id.get(key_id)
        if found is None:
            return super().find_match(key_id)
        return _match(found) if _is_good(found) else None


def source_of(database: Database) -> UsersSource | None:
    """Returns the file that this process follows for a database; None in another mode."""
    return _sources.get(database)


def stop_source(database: Database) -> None:
    """Ends the following of the file for a database in this process, if there is one."""
    source = _sources.pop(database, None)
    if source is not None:
        source.stop()


def _path_of(context: AuthContext) -> str:
    if not context.argument:
        raise UsageError(
            "--auth file needs the file of users: --auth file:///path/of/users.toml.", field="auth"
        )
    return os.path.abspath(context.argument)


def _good_key(users: UsersFile, text: str) -> FileKey | None:
    found = users.key_by_hash.get(hash_of_key(text))
    return found if found is not None and _is_good(found) else None


def _is_good(key: FileKey) -> bool:
    return time.time_ns() // 1_000_000 < key.expires_ms


def _match(key: FileKey) -> KeyMatch:
    return KeyMatch(
        key_id=key.key_id, user_id=key.user_id, label=key.label, rules=key.rules, expires_at=key.expires_ms
    )
