"""Asking for a link: counted by address, and answered before anything that depends on the address is done."""

from __future__ import annotations

import math
import unicodedata

from svc.errors import RateLimited
from svc.plugin import Call, hash_content
from svc_auth_magic_link.configuration import VERIFY_PATH, MagicLinkSettings
from svc_auth_magic_link.delivery import delivery_of
from svc_auth_self.api import limiter_of, token_mode

__all__ = ["ANSWER", "MOST_REQUESTS", "WINDOW_SECONDS", "ask"]

ANSWER = "If an active user has this address, a link to sign in is on its way to it."
"""What everybody is told who asks."""

MOST_REQUESTS = 5
WINDOW_SECONDS = 15 * 60


def ask(call: Call, settings: MagicLinkSettings, email: str, path: str = VERIFY_PATH) -> str:
    """Takes a request for a link down and returns what everybody is told; see ``delivery``.

    Args:
        call: who asks.
        settings: of the plugin.
        email: the address.
        path: where the link leads, as ``MagicLinkSettings.link`` takes it.

    Raises:
        RateLimited: there were too many for this address.
        Conflict: the server's auth mode has no tokens.
    """
    email, mode = _normal(email), token_mode(call)
    wait_s = limiter_of(call.database, "magic-link").hit(_key_of(email), MOST_REQUESTS, WINDOW_SECONDS)
    if wait_s is not None:
        raise RateLimited(
            f"At most {MOST_REQUESTS} links are sent to an address in {WINDOW_SECONDS // 60} minutes.",
            retry_after=math.ceil(wait_s),
            limit=MOST_REQUESTS,
        )
    if settings.gives_links:
        delivery_of(call.database).request(email, mode.accounts, settings, path)
    return ANSWER


def _normal(email: str) -> str:
    """The form of an address that is the same for all spellings, as for usernames."""
    composed = unicodedata.normalize("NFC", email.strip())
    return unicodedata.normalize("NFC", composed.casefold())


def _key_of(email: str) -> str:
    """What requests are counted under: no address is kept."""
    return hash_content(email.encode("utf-8", "surrogatepass")).hex()
