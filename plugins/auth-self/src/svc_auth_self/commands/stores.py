"""What the commands ask of a database's keys: one protocol, for a file and for a server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from svc.errors import NotFound
from svc.plugin import ROOT_USER_ID, Database, Source
from svc_auth_self.configuration import AuthSelfConfiguration
from svc_auth_self.keys import DAY_MS, create_key, keys_after, keys_of, revoke_key
from svc_auth_self.records import now_ms
from svc_auth_self.signing import rotate_now
from svc_client import Client
from svc_users.api import find_user, find_user_by_name
from svc_users.operations import named_user

__all__ = ["Document", "KeyStore", "open_keys"]

Document = dict[str, Any]


class KeyStore(Protocol):
    """The keys of one database. Methods block and raise the errors of ``svc.errors``."""

    def create(self, label: str, days: int, rules: Sequence[dict[str, str]], user: str | None) -> Document:
        """Makes a key; the answer has its text."""

    def list(self, user: str | None) -> Iterator[Document]:
        """Yields the keys, or those of a user, oldest first."""

    def revoke(self, key_id: str) -> None:
        """Revokes a key."""

    def rotate_signing_key(self, *, end_tokens: bool) -> str:
        """Signs with a new key from now on."""


@contextmanager
def open_keys(source: Source, *, read_only: bool = False) -> Iterator[KeyStore]:
    """Opens the keys that a command works on, for as long as the context lasts."""
    with source.open("auth.self", read_only=read_only) as opened:
        yield LocalKeys(opened) if isinstance(opened, Database) else RemoteKeys(opened)


class LocalKeys:
    """Keys of a database file: whoever may write it is root. See ``KeyStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, label: str, days: int, rules: Sequence[dict[str, str]], user: str | None) -> Document:
        """Makes a key for root, or for a user."""
        user_id = ROOT_USER_ID if user is None else self._user_id(user)
        with self._database.transaction(actor=ROOT_USER_ID, message="make an API key") as transaction:
            record, text = create_key(
                self._database,
                transaction,
                user_id=user_id,
                label=label,
                expires_at=now_ms() + days * DAY_MS,
                rules=rules,
                created_by=ROOT_USER_ID,
            )
        members = ("key_id", "user_id", "label", "expires_at", "rules")
        shown = {name: getattr(record, name) for name in members}
        return {"key_id": shown.pop("key_id"), "key": text, **shown}

    def list(self, user: str | None) -> Iterator[Document]:
        """Yields the keys."""
        system = self._database.system()
        for record in keys_after(system) if user is None else keys_of(system, self._user_id(user)):
            members = ("key_id", "label", "user_id", "expires_at", "created_at", "rules")
            yield {name: getattr(record, name) for name in members}

    def revoke(self, key_id: str) -> None:
        """Revokes a key."""
        with self._database.transaction(actor=ROOT_USER_ID, message="revoke an API key") as transaction:
            revoke_key(self._database, transaction, key_id)

    def rotate_signing_key(self, *, end_tokens: bool) -> str:
        """Signs with a new key from now on."""
        lifetime = AuthSelfConfiguration().jwt_expiry
        return rotate_now(self._database, lifetime, end_tokens=end_tokens, actor=ROOT_USER_ID)

    def _user_id(self, user: str) -> str:
        system = self._database.system()
        if _is_id(user):
            if user == ROOT_USER_ID:
                return user
            found = find_user(system, user)
        else:
            found = find_user_by_name(system, user)
        if found is None or not found.is_active:
            raise NotFound("There is no active user of this id or name.", field="user")
        return found.user_id


class RemoteKeys:
    """Keys of a server, as it shows them to the caller. See ``KeyStore``."""

    def __init__(self, client: Client) -> None:
        self._keys = client.keys
        self._client = client

    def create(self, label: str, days: int, rules: Sequence[dict[str, str]], user: str | None) -> Document:
        """Makes a key for the caller, or for a user."""
        user_id = self._user_id(user)
        return _document(self._keys.create(label=label, expires_in_days=days, rules=rules, user_id=user_id))

    def list(self, user: str | None) -> Iterator[Document]:
        """Yields the keys."""
        return map(_document, self._keys.list(user_id=self._user_id(user)))

    def revoke(self, key_id: str) -> None:
        """Revokes a key."""
        self._keys.revoke(key_id)

    def rotate_signing_key(self, *, end_tokens: bool) -> str:
        """Signs with a new key from now on."""
        return self._keys.rotate_signing_key(end_tokens=end_tokens)

    def _user_id(self, user: str | None) -> str | None:
        return user if user is None or _is_id(user) else named_user(self._client, user).user_id


def _document(answer: msgspec.Struct) -> Document:
    document: Document = msgspec.to_builtins(answer)
    return document


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
