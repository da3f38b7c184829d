"""From the claims of a token to a caller: a value in, a value out."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from svc_auth_oidc.configuration import OidcSettings
from svc_users.api import own_group

__all__ = ["Caller", "caller_of"]

_MAXIMUM_GROUPS = 1000
_MAXIMUM_NAME = 200
_SINGLE_USERS = "user:"


class Caller(NamedTuple):
    """Who a token speaks for.

    Attributes:
        user_id: a UUID made of issuer and subject, which is always the same for one account.
        name: what logs and commits call them.
        groups: names of the groups in svc, the caller's own among them.
        is_root: whether the issuer has them in the group of root.
        reads_only: whether their token was given for reading alone.
    """

    user_id: str
    name: str
    groups: frozenset[str]
    is_root: bool
    reads_only: bool


def caller_of(claims: Mapping[str, Any], settings: OidcSettings) -> Caller | None:
    """Returns the caller that claims speak for; None where they name no subject, or have not the scope.

    An issuer's group never becomes the group of a single user (``user:<id>``), whatever it is called there.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject.strip():
        return None
    scopes = _scopes(claims)
    is_whole = not settings.required_scope or settings.required_scope in scopes
    if not is_whole and (not settings.read_scope or settings.read_scope not in scopes):
        return None
    user_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{claims.get('iss')}\n{subject}"))
    named = _find(claims, settings.user_claim)
    name = named if isinstance(named, str) and named.strip() else subject
    given = _names(_find(claims, settings.groups_claim))
    mapped = {settings.group_prefix + group for group in given}
    groups = {group for group in mapped if not group.casefold().startswith(_SINGLE_USERS)}
    is_root = bool(settings.root_group) and settings.root_group in given
    return Caller(
        user_id, _printable(name), frozenset({*groups, own_group(user_id)}), is_root, reads_only=not is_whole
    )


def _find(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by names joined by dots where claims are within claims."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """What a token was given for: a text with spaces (RFC 8693), or a list, as some issuers have it."""
    given = claims.get("scope", claims.get("scp"))
    listed = given.split(" ") if isinstance(given, str) else given if isinstance(given, list) else []
    return {scope for scope in listed if isinstance(scope, str)}


def _names(value: Any) -> list[str]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    names = [name for name in listed if isinstance(name, str) and 0 < len(name) <= _MAXIMUM_NAME]
    return [name for name in names if name.isprintable()][:_MAXIMUM_GROUPS]


def _printable(name: str) -> str:
    return "".join(letter for letter in name[:_MAXIMUM_NAME] if letter.isprintable())
