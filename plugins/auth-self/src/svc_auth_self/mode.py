"""The auth mode ``self-contained``, and what every mode with our keys and tokens has in common.

The pipeline asks once for each token after each commit, or for each request where the accounts depend on more
than the database. That costs a lookup of the token and a comparison of stamps; a token that is seen for the
first time costs one signature check and a few lookups in the system tree. What is kept counts as long as the
stamp of all that an identity depends on stays the same: a revoked key ends with the next request on every
worker.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from svc.errors import AuthRequired
from svc.plugin import (
    ROOT_USER_ID,
    AuthContext,
    AuthMode,
    Credentials,
    Database,
    Identity,
    KnownUser,
    ScopedRule,
)
from svc_auth_self.accounts import Account, Accounts, DatabaseAccounts
from svc_auth_self.keys import KeyRecord, find_key, key_id_of, verified_key
from svc_auth_self.records import now_ms
from svc_auth_self.refresh import ENDED_CHAINS, has_ended
from svc_auth_self.root_key import ensure_root_key
from svc_auth_self.rules import scoped_rules
from svc_auth_self.signing import SigningKeys
from svc_auth_self.tokens import NOT_VALID, SHARE_SUBJECT, Claims, TokenReader, TokenWriter
from svc_users.api import RightsCache

__all__ = ["KeyMatch", "SelfContainedAuthMode", "TokenAuthMode"]

_MOST_KNOWN = 10_000
_SHARE_PREFIX = "/share/"
_SHARE_COOKIE = "svc_share"
_SECURE_SHARE_COOKIE = "__Host-svc_share"
"""What a browser takes by TLS from this very host alone: over TLS no other counts."""
_KEY_DIRECTORIES = ("api-keys", "signing-keys", ENDED_CHAINS)


_IS_KEY = (
    'This is an API key, not a token: exchange it for one, by POST /auth/token with {"api_key": "..."}, '
    "or by 'svc login'."
)


class KeyMatch(msgspec.Struct, frozen=True, kw_only=True):
    """An API key that is good now.

    Attributes:
        key_id: UUID.
        user_id: the owner; None is a share key.
        label: what people call it.
        rules: in order; empty: no restriction.
        expires_at: Unix milliseconds; None: never.
    """

    key_id: str
    user_id: str | None
    label: str = ""
    rules: tuple[ScopedRule, ...] = ()
    expires_at: int | None = None


class _Known(msgspec.Struct, frozen=True, gc=False):
    """A token that was judged: whose it is, under which stamp, and when it ends."""

    identity: Identity
    stamp: object
    expires_s: float


class TokenAuthMode(AuthMode):
    """A mode whose callers sign in with API keys and bear tokens that the database has signed.

    Subclasses say who there is by ``make_accounts``, and may know keys of their own. What ``bind`` returns
    has these attributes besides:

    Attributes:
        database: the database that is served.
        accounts: who there is.
        argument: what follows the mode's name in ``--auth``.
    """

    database: Database
    accounts: Accounts
    argument: str

    @abstractmethod
    def make_accounts(self, context: AuthContext) -> Accounts:
        """Returns the accounts of a database; called once for each ``bind`` and ``prepare``."""

    # -- the contract of auth modes --------------------------------------------------------------

    def prepare(self, context: AuthContext) -> Iterable[str]:
        """Makes the root key of a new database, and prints it this once."""
        return ensure_root_key(context.database)

    def verify_root_key(self, context: AuthContext, key: str) -> bool | None:
        """Says whether a key is good and lets its bearer do everything."""
        key_id = key_id_of(key)
        known = None if key_id is None else find_key(context.database.system(), key_id)
        if known is None:
            return None  # a key of another mode, perhaps
        record = verified_key(context.database, key)
        return record is not None and record.is_root_key

    def bind(self, context: AuthContext) -> TokenAuthMode:
        """Returns a mode for one database."""
        bound = type(self)()
        bound.argument = context.argument
        bound.database = context.database
        bound.accounts = bound.make_accounts(context)
        bound._open()
        return bound

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Judges a bearer token; see ``AuthMode``. Does not block.

        Raises:
            AuthRequired: the token is not good; every reason reads the same.
        """
        if credentials.scheme == "bearer" and credentials.value is not None:
            token = credentials.value
        else:
            found = credentials.query_token or _share_cookie(credentials)
            if found is None:
                return None
            token = found
        head = self.database.head()
        stamp = self._stamp_at(head)
        known = self._known.get(token)
        at_s = time.time() if credentials.as_of_s is None else credentials.as_of_s
        if known is not None and known.stamp is stamp and at_s < known.expires_s:
            return known.identity
        return self._judge(token, stamp, head.sequence, at_s)

    def find_user(self, name_or_id: str) -> KnownUser | None:
        """Returns whom a name or an id means among the accounts; see ``AuthMode``."""
        found = self.accounts.find(name_or_id.lower()) or self.accounts.find_by_name(name_or_id)
        if found is None or found.user_id == ROOT_USER_ID:
            return None
        return KnownUser(found.user_id, found.username)

    # -- what other modes may change -------------------------------------------------------------

    def match_key(self, text: str) -> KeyMatch | None:
        """Returns the key of a text if it is good now: known, not revoked, not expired.

        A mode with keys of its own looks at those first, and asks here for the others.
        """
        record = verified_key(self.database, text)
        return None if record is None else _match(record)

    def find_match(self, key_id: str) -> KeyMatch | None:
        """Returns the key of an id if it is good now. Asked when a token of the key is first seen."""
        record = find_key(self.database.system(), key_id)
        return None if record is None or record.is_expired(now_ms()) else _match(record)

    # -- signing in ------------------------------------------------------------------------------

    def write_token(
        self, match: KeyMatch | Account, lifetime_s: int, chain_id: str | None = None
    ) -> tuple[str, int]:
        """Returns an access token for a key or an account, and the seconds for which it is good."""
        if isinstance(match, Account):
            return self._writer.write(match.user_id, None, lifetime_s, None, chain_id)
        subject = match.user_id or SHARE_SUBJECT
        return self._writer.write(subject, match.key_id, lifetime_s, match.expires_at, chain_id)

    # -- within ----------------------------------------------------------------------------------

    def chain_of(self, token: str) -> str | None:
        """Returns which sign-in an access token is of; None where it is of none that can be ended.

        Raises AuthRequired where it is no token of this database.
        """
        return self._reader.read(token).chain_id

    def _open(self) -> None:
        keys = SigningKeys(self.database)
        self._reader = TokenReader(keys)
        self._writer = TokenWriter(keys)
        self._rights = RightsCache(self.database)
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        # A head with the hashes of the directories of keys and of ended sign-ins there.
        self._seen: tuple[Any, tuple[Any, ...]] = (None, ())
        self.asked_once_a_commit = bool(getattr(self.accounts, "follows_head", False))
        # The parts that the present stamp was made of, and the stamp: what is kept is compared by identity.
        self._stamped: tuple[object, object, object] = (None, None, object())

    def _stamp_at(self, head: Any) -> object:
        """An object that stays the same while nothing changes that an identity depends on."""
        seen, keys = self._seen
        if seen is not head:
            keys = self._hashes_at(head, keys)
            self._seen = (head, keys)
        accounts = self.accounts.stamp()
        stamped = self._stamped
        if stamped[0] is not keys or stamped[1] is not accounts:
            with self._lock:
                stamped = self._stamped
                if stamped[0] != keys or stamped[1] != accounts:
                    self._known = {}
                    stamped = (keys, accounts, object())
                else:
                    stamped = (keys, accounts, stamped[2])
                self._stamped = stamped
        return stamped[2]

    def _hashes_at(self, head: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
        system = self.database.version_of(head.system_root)
        found = (system.get((name,)) for name in _KEY_DIRECTORIES)
        hashes = tuple(None if entry is None else entry.hash for entry in found)
        return before if hashes == before else hashes

    def _judge(self, token: str, stamp: object, sequence: int, at_s: float) -> Identity:
        """Judges a token by the state of now, and keeps the outcome if that is still the stamp's.

        ``at_s`` is the time at which it must not have expired.
        """
        if key_id_of(token) is not None:
            raise AuthRequired(_IS_KEY)
        claims = self._reader.read(token)
        if claims.expires_s <= at_s:
            raise AuthRequired(NOT_VALID)
        identity = self._identify(claims)
        # Else what is kept under the stamp could be of a state that came and went.
        if self.database.head().sequence == sequence:
            ends = claims.expires_s if identity.expires_ms is None else identity.expires_ms / 1_000
            with self._lock:
                if len(self._known) >= _MOST_KNOWN:
                    self._known = {}
                self._known[token] = _Known(identity, stamp, ends)
        return identity

    def _identify(self, claims: Claims) -> Identity:
        if claims.chain_id is not None and has_ended(self.database.system(), claims.chain_id):
            raise AuthRequired(NOT_VALID)
        match: KeyMatch | None = None
        if claims.key_id is not None:
            match = self.find_match(claims.key_id)
            if match is None or (match.user_id or SHARE_SUBJECT) != claims.subject:
                raise AuthRequired(NOT_VALID)
        if claims.subject == SHARE_SUBJECT:
            if match is None or not match.rules:
                raise AuthRequired(NOT_VALID)
            return Identity(
                user_id=None,
                name=f"share:{match.key_id}",
                auth_mode=self.name,
                key_id=match.key_id,
                rules=match.rules,
                expires_ms=_earliest(claims, match),
            )
        account = self.accounts.find(claims.subject)
        if account is None or not account.is_active:
            raise AuthRequired(NOT_VALID)
        return Identity(
            user_id=account.user_id,
            name=account.username,
            is_root=account.is_root,
            auth_mode=self.name,
            key_id=claims.key_id,
            groups=account.groups,
            rights=None if account.is_root else self._rights.of(account.groups, self.database.system()),
            rules=() if match is None else match.rules,
            expires_ms=_earliest(claims, match),
        )


class SelfContainedAuthMode(TokenAuthMode):
    """Users, keys and tokens that the database itself keeps."""

    name: ClassVar[str] = "self-contained"
    aliases: ClassVar[tuple[str, ...]] = ("self",)
    allows_argument: ClassVar[bool] = False

    def make_accounts(self, context: AuthContext) -> Accounts:
        """The users of the database, and root."""
        return DatabaseAccounts(context.database)


def _match(record: KeyRecord) -> KeyMatch:
    return KeyMatch(
        key_id=record.key_id,
        user_id=record.user_id,
        label=record.label,
        rules=scoped_rules(record.rules),
        expires_at=record.expires_at,
    )


def _earliest(claims: Claims, match: KeyMatch | None) -> int:
    ends = claims.expires_s * 1_000
    return ends if match is None or match.expires_at is None else min(ends, match.expires_at)


def _share_cookie(credentials: Credentials) -> str | None:
    """The token of a page below /share, where a browser sends it as a cookie; for reading only."""
    if credentials.method not in ("GET", "HEAD") or not credentials.path.startswith(_SHARE_PREFIX):
        return None
    if credentials.value is not None:
        return None
    found: dict[str, str] = {}
    for part in (credentials.header("cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        found.setdefault(name, value)
    if credentials.secure:
        return found.get(_SECURE_SHARE_COOKIE) or None
    # A proxy may have TLS, and not be trusted to say so.
    return found.get(_SECURE_SHARE_COOKIE) or found.get(_SHARE_COOKIE) or None
