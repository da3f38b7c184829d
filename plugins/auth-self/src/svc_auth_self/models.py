"""What the operations on tokens and keys take and answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from svc.plugin import ArrayPage, Confidential

__all__ = [
    "DEFAULT_KEY_DAYS",
    "LONGEST_KEY_DAYS",
    "ApiKey",
    "ApiKeyPage",
    "KeyQuery",
    "NewApiKey",
    "NewKey",
    "NewSigningKey",
    "RefreshToken",
    "RevokedKey",
    "SignIn",
    "SignInList",
    "SignInQuery",
    "SignedIn",
    "SignedOut",
    "SigningKey",
    "TokenRequest",
]

DEFAULT_KEY_DAYS = 730
LONGEST_KEY_DAYS = 3_650
MOST_LISTED = 1_000

Time = Annotated[int, Meta(description="Unix milliseconds.")]
Rules = Annotated[
    list[dict[str, str]],
    Meta(description="Objects with one member, a path glob with its flags. None: no restriction."),
]
Owner = Annotated[str | None, Meta(description="The user whose key it is; null for the key of a share link.")]


class SignInQuery(Struct, frozen=True, kw_only=True):
    """Which sign-ins are listed."""

    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED, description="Sign-ins at most.")] = 100
    refused: Annotated[bool | None, Meta(description="Those that were refused, or that were not.")] = None


class SignIn(Struct, frozen=True, kw_only=True):
    """A sign-in that was good, or one that was refused, for a ``reason``.

    ``how`` says by what: ``API key``, ``link``, ``share link``, ``refresh token``. ``remote`` is the client's
    address, where it has one.
    """

    at: Time
    how: str
    user_id: str | None
    username: str | None
    key_id: str | None
    remote: str | None
    request_id: str
    reason: str | None


class SignInList(Struct, frozen=True):
    """The last sign-ins, the newest first."""

    sign_ins: list[SignIn]


class TokenRequest(Confidential, frozen=True, forbid_unknown_fields=True):
    """A key to be exchanged, for an access token alone where ``refresh`` is false."""

    shown = ("refresh",)

    api_key: str
    refresh: bool = True


class RefreshToken(Confidential, frozen=True, forbid_unknown_fields=True):
    """A refresh token, which is spent or ends its sign-in."""

    refresh_token: str


class SignedIn(Confidential, frozen=True, kw_only=True):
    """What somebody gets who has signed in. Its representation shows no token.

    ``refresh_token`` gets the next access token; null where none was asked for.
    """

    shown = ("expires_in",)

    token: str
    expires_in: Annotated[int, Meta(description="Seconds for which the access token is good.")]
    refresh_token: str | None = None


class SignedOut(Struct, frozen=True):
    """A sign-in was ended."""

    logged_out: Literal[True]


class NewKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to be made; 730 days are usual. Only root may name another user than the caller."""

    label: str | None = None
    expires_in_days: Annotated[int, Meta(ge=1, le=LONGEST_KEY_DAYS)] | None = None
    rules: Rules | None = None
    user_id: str | None = None


class NewApiKey(Confidential, frozen=True, kw_only=True):
    """A key that was just made, with its text, which is not shown again. Its representation has no secret."""

    shown = ("key_id", "user_id")

    key_id: str
    key: str
    user_id: Owner
    label: str
    expires_at: Time
    rules: Rules


class ApiKey(Struct, frozen=True, kw_only=True):
    """A key as lists show it."""

    key_id: str
    label: str
    user_id: Owner
    expires_at: Time
    created_at: Time
    rules: Rules


class ApiKeyPage(ArrayPage[ApiKey], frozen=True):
    """A part of a list of keys."""

    keys: list[ApiKey]


class KeyQuery(Struct, frozen=True, kw_only=True):
    """Which keys are listed."""

    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED, description="Most keys of the part.")] = MOST_LISTED
    after: Annotated[str | None, Meta(description="Begin behind the key of this id.")] = None
    user_id: Annotated[str | None, Meta(description="Those of this user.")] = None


class RevokedKey(Struct, frozen=True):
    """A key was revoked."""

    revoked: Literal[True]
    key_id: str


class NewSigningKey(Struct, frozen=True, forbid_unknown_fields=True):
    """How tokens are signed with a new key; ``end_tokens`` ends every access token at once."""

    end_tokens: bool = False


class SigningKey(Struct, frozen=True):
    """The key that tokens are signed with, as they name it."""

    kid: str
