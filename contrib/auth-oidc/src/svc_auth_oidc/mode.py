"""The auth mode ``oidc``."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlsplit

import jwt
from msgspec import Struct
from msgspec.structs import replace

from svc.errors import AuthRequired, UsageError
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
from svc_auth_oidc.claims import caller_of
from svc_auth_oidc.configuration import OidcSettings
from svc_auth_oidc.documents import SigningKey, is_trusted_url
from svc_auth_oidc.health import watch
from svc_auth_oidc.issuer import IssuerKeys
from svc_users.api import RightsCache

__all__ = ["BoundOidcMode", "OidcAuthMode"]

_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_LONGEST_TOKEN = 16_384
_KEPT_TOKENS = 4096
_LATEST = 253_402_300_799.0
"""The end of the year 9999, in Unix seconds."""
_READING = (ScopedRule("/**", "-r--l---"),)
_REQUIRED = ["aud", "exp", "iss", "sub"]


class OidcAuthMode(AuthMode):
    """Takes ``Authorization: Bearer <JWT>`` of one issuer. As registered: it has no database yet."""

    name: ClassVar[str] = "oidc"

    def prepare(self, context: AuthContext) -> Sequence[str]:
        """Refuses the start without an issuer and an audience; the issuer itself may be down."""
        issuer, settings = _chosen(context)
        if not issuer or not is_trusted_url(issuer):
            raise UsageError("--auth oidc://HOST/PATH or the setting issuer names an issuer at an https URL.")
        if not settings.audience:
            raise UsageError("The auth mode oidc needs the setting audience: what tokens name in 'aud'.")
        return ()

    def bind(self, context: AuthContext) -> BoundOidcMode:
        """Returns the object that judges requests, and lets the health check know of it."""
        self.prepare(context)
        bound = BoundOidcMode(context.database, *_chosen(context))
        watch(context.database, bound.keys)
        return bound

    def verify_root_key(self, context: AuthContext, key: str) -> bool | None:
        """Whether a key is a token of a member of the root group; None for what is no token."""
        issuer, settings = _chosen(context)
        if not issuer or not settings.audience or _TOKEN.fullmatch(key) is None:
            return None
        try:
            identity = self.bind(context).authenticate(Credentials("bearer", key))
        except AuthRequired:
            return False
        return identity is not None and identity.is_unrestricted_root

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Never asked: requests are judged by what ``bind`` gives."""
        raise AuthRequired("The auth mode is not bound to a database.")


class _Known(Struct, frozen=True):
    """A token that was checked: by which key, whose it is, and until when that holds (Unix seconds)."""

    kid: str | None
    key: SigningKey
    identity: Identity
    expires: float


class BoundOidcMode(OidcAuthMode):
    """The mode for one database, in one worker.

    Args:
        database: whose grants decide what callers may do.
        issuer: URL of the issuer.
        settings: the settings of the plugin.

    Attributes:
        keys: the keys of the issuer.
    """

    def __init__(self, database: Database, issuer: str, settings: OidcSettings) -> None:
        self.keys = IssuerKeys(issuer, settings)
        self._database = database
        self._issuer = issuer
        self._settings = settings
        self._rights = RightsCache(database)
        self._known: dict[str, _Known] = {}

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Judges a bearer token. The signature is checked once for each token and key.

        Raises:
            AuthRequired: the token is not valid.
            ServiceUnavailable: the issuer does not answer, and its key is not known yet.
        """
        token = credentials.query_token if credentials.value is None else credentials.value
        if token is None or credentials.scheme not in (None, "bearer"):
            return None
        known = self._known.get(token)
        if known is None or self.keys.find(known.kid) is not known.key:
            known = self._check(token)
        if known.expires <= (time.time() if credentials.as_of_s is None else credentials.as_of_s):
            self._known.pop(token, None)
            _refuse()
        return self._with_rights(token, known)

    def find_user(self, name_or_id: str) -> KnownUser | None:
        """Returns whoever has an id: nobody knows an account of the issuer before it signs in."""
        try:
            is_id = str(uuid.UUID(name_or_id)) == name_or_id.lower()
        except ValueError:
            return None
        return KnownUser(name_or_id.lower(), None) if is_id and name_or_id != ROOT_USER_ID else None

    def _check(self, token: str) -> _Known:
        """Checks a token that is not known, or whose key is not the same any more."""
        self._known.pop(token, None)
        if len(token) > _LONGEST_TOKEN or _TOKEN.fullmatch(token) is None:
            _refuse()
        kid, key, claims = self._verified(token)
        caller = caller_of(claims, self._settings)
        if caller is None:
            _refuse()
        expires = min(float(claims["exp"]) + self._settings.leeway_s, _LATEST)
        identity = Identity(
            user_id=caller.user_id,
            name=caller.name,
            is_root=caller.is_root,
            auth_mode=self.name,
            groups=caller.groups,
            rules=_READING if caller.reads_only else (),
            expires_ms=int(expires * 1000),
        )
        if len(self._known) >= _KEPT_TOKENS:
            self._known.clear()
        known = self._known[token] = _Known(kid, key, identity, expires)
        return known

    def _verified(self, token: str) -> tuple[str | None, SigningKey, dict[str, Any]]:
        """The key and the claims of a token. The algorithm is one that is allowed and that the key is for."""
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            kid, algorithm = header.get("kid"), header.get("alg")
            key = self.keys.find(kid) if algorithm in settings.algorithms else None
            if key is None or algorithm not in key.algorithms:
                _refuse()
            claims = jwt.decode(
                token,
                key.public,
                algorithms=[algorithm],
                audience=settings.audience,
                issuer=self._issuer,
                leeway=settings.leeway_s,
                options={"require": _REQUIRED},
            )
            return kid, key, claims
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            _refuse()

    def _with_rights(self, token: str, known: _Known) -> Identity:
        """The identity with the rights that its groups have now; the same object while they stay the same."""
        identity = known.identity
        if identity.is_root:
            return identity
        rights = self._rights.of(identity.groups, self._database.system())
        if identity.rights is not rights:
            identity = replace(identity, rights=rights)
            self._known[token] = replace(known, identity=identity)
        return identity


def _chosen(context: AuthContext) -> tuple[str, OidcSettings]:
    """The URL of the issuer, from the command line before the settings, and the settings."""
    given = context.configuration
    settings = given if isinstance(given, OidcSettings) else OidcSettings()
    if not context.argument:
        return settings.issuer, settings
    local = (
        is_trusted_url(f"http://{context.argument}") and urlsplit(f"//{context.argument}").port is not None
    )
    return f"{'http' if local else 'https'}://{context.argument}", settings


def _refuse() -> NoReturn:
    raise AuthRequired("The token is not valid.")
