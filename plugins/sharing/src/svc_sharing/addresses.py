"""The URL of a link: ``<base>/share#<key>``. What follows ``#`` stays in the browser and reaches no log."""

from __future__ import annotations

from urllib.parse import urlsplit

from svc.errors import InvalidInput

__all__ = ["is_base_url", "link_url"]

_MAXIMUM = 2_000


def is_base_url(text: str) -> bool:
    """Whether links may begin with this: an http or https URL without user, query and fragment."""
    if len(text) > _MAXIMUM or not text.isascii() or not text.isprintable() or not _has_url_characters(text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not any((parts.query, parts.fragment, parts.username, parts.password))
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain


def link_url(base: str, key: str) -> str:
    """Returns the URL that opens a link; an empty ``base`` gives one without a server."""
    if base and not is_base_url(base):
        raise InvalidInput(
            "base_url is an http or https URL without user, query and fragment.", field="base_url"
        )
    return f"{base.rstrip('/')}/share#{key}"


def _has_url_characters(text: str) -> bool:
    return not set(text) & set(' "<>\\^`{|}#?')
