"""The settings of the plugin: lifetimes and limits, each with its default."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["AuthSelfConfiguration"]


class AuthSelfConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of keys and tokens.

    Attributes:
        jwt_expiry: seconds for which an access token is good; ``--jwt-expiry`` sets it too.
        refresh_days: days for which a refresh token is good; each refresh begins them anew.
        refresh_reuse_s: seconds in which a spent refresh token that comes back is taken for a lost answer or
            a second tab. Later it is taken for theft, and ends every token that came from it.
        signing_key_days: days after which tokens are signed with a new key.
        keys_per_user: keys that one user may have, besides root.
        login_failures: failed logins from one address, or with one key, within ``login_window_s`` seconds;
            more are refused without a look.
        sign_ins_per_minute: times that one key is exchanged for tokens within a minute, and that one sign-in
            is refreshed; more are refused.
    """

    jwt_expiry: Annotated[int, msgspec.Meta(ge=10, le=7 * 86_400)] = 3_600
    refresh_days: Annotated[int, msgspec.Meta(ge=1, le=365)] = 30
    refresh_reuse_s: Annotated[int, msgspec.Meta(ge=0, le=3_600)] = 30
    signing_key_days: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 90
    keys_per_user: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1_000
    login_failures: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    login_window_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 300
    sign_ins_per_minute: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 120
