"""The settings of the plugin."""

from __future__ import annotations

import msgspec

__all__ = ["ASYMMETRIC", "OidcSettings"]

ASYMMETRIC = frozenset(
    {"EdDSA", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}
)
"""The algorithms that may be allowed. The server holds public keys only: no token is made with those."""


class OidcSettings(msgspec.Struct, frozen=True):
    """The settings of the plugin, one set for each database that enables it.

    Attributes:
        issuer: URL of the issuer, as its tokens spell it in ``iss``; ``--auth oidc://HOST/PATH`` says it too.
        audience: what a token must name in ``aud``: how the issuer knows this server. There is no default,
            since a token that was made for another service must not open this one.
        algorithms: the signature algorithms that are taken.
        user_claim: the claim that people are called by in logs; without it, ``sub``.
        groups_claim: the claim with the names of groups; ``realm_access.roles`` is a claim within a claim.
        group_prefix: what comes before each of these names in svc.
        root_group: members of this group, as the issuer calls it, are root; empty for nobody.
        required_scope: the scope that a token must have been given (``scope``, or ``scp``); empty for none.
        read_scope: with this scope alone, instead of the required one, a token may read and list; empty for
            none.
        leeway_s: how far the clocks of both may be apart.
        refresh_s: the keys of the issuer are fetched again after this time.
        retry_s: the shortest time between two fetches, whatever tokens come.
        stale_s: for how long keys are trusted that could not be fetched again.
        timeout_s: how long the issuer may take for each answer.
    """

    issuer: str = ""
    audience: str = ""
    algorithms: tuple[str, ...] = ("EdDSA", "ES256", "PS256", "RS256")
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    group_prefix: str = ""
    root_group: str = ""
    required_scope: str = ""
    read_scope: str = ""
    leeway_s: int = 30
    refresh_s: int = 600
    retry_s: int = 10
    stale_s: int = 86_400
    timeout_s: float = 5.0

    def __post_init__(self) -> None:
        if not self.algorithms or not ASYMMETRIC.issuperset(self.algorithms):
            raise ValueError(f"algorithms are some of {', '.join(sorted(ASYMMETRIC))}")
        if self.group_prefix.startswith("user:"):
            raise ValueError("a group_prefix does not begin with 'user:': such groups are single users")
        if self.read_scope and not self.required_scope:
            raise ValueError("a read_scope narrows what a required_scope gives: name both, or neither")
        if min(self.leeway_s, self.retry_s) < 0 or min(self.refresh_s, self.stale_s, self.timeout_s) <= 0:
            raise ValueError("times are not negative, and refresh_s, stale_s and timeout_s not zero")
