"""Media types of stored files: one that was stored in a content coding keeps it as a parameter.

So it goes wherever the type goes: into copies, merges, exports, other nodes. Over HTTP it is the field
``Content-Encoding`` again.
"""

from __future__ import annotations

import codecs
import functools
import re
from contextlib import suppress

__all__ = ["join_content_encoding", "split_content_encoding", "text_encoding"]

_NOT_OF_FILES = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})
"""Encodings of names and of programs; some take very long for a text."""

_PARAMETER = re.compile(
    r";[ \t]*content-encoding=(?:\"(?P<quoted>[!#-\[\]-~ ]*)\""
    r"|(?P<token>[!#$%&'*+\-.^_`|~0-9A-Za-z]+))[ \t]*",
    re.IGNORECASE,
)
_CODINGS = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:, [!#$%&'*+\-.^_`|~0-9A-Za-z]+)*")


@functools.lru_cache(maxsize=1024)
def split_content_encoding(content_type: str) -> tuple[str, str | None]:
    """Returns a media type without its content codings, and these as ``Content-Encoding`` names them."""
    found = _PARAMETER.search(content_type)
    if found is None:
        return content_type, None
    codings = found["quoted"] or found["token"]
    if codings is None or _CODINGS.fullmatch(codings) is None:
        return content_type, None
    return content_type[: found.start()] + content_type[found.end() :], codings


def join_content_encoding(content_type: str, codings: str) -> str | None:
    """Returns a media type with the codings of a field ``Content-Encoding``; None where they are none.

    ``identity`` says nothing and is left out.
    """
    names = [name.strip(" \t").lower() for name in codings.split(",")]
    joined = ", ".join(name for name in names if name != "identity")
    if not joined:
        return content_type
    if _CODINGS.fullmatch(joined) is None:
        return None
    plain, _ = split_content_encoding(content_type)
    return (
        f"{plain}; content-encoding={joined}"
        if "," not in joined
        else f'{plain}; content-encoding="{joined}"'
    )


def text_encoding(name: str) -> str | None:
    """Returns the one name that an encoding has here, or None where texts have none of that name.

    Args:
        name: as somebody writes it: ``windows-1252``, ``Latin1``.
    """
    with suppress(LookupError, ValueError):
        found = codecs.lookup(name)
        if found._is_text_encoding and found.name.replace("-", "_") not in _NOT_OF_FILES:
            return found.name
    return None
