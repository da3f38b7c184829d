"""Paths of files inside a database: what is a valid one, and what belongs to the system.

A path is a tuple of segments. Its text is UTF-8 in Unicode normalization form C; ``.`` and empty segments
collapse; case matters.
"""

from __future__ import annotations

import unicodedata

from svc.errors import InvalidPath

__all__ = [
    "DIRECTORY_CONFIGURATION",
    "MAXIMUM_PATH_BYTES",
    "MAXIMUM_SEGMENT_BYTES",
    "SERVER_CONFIGURATION",
    "SYSTEM_NAMES",
    "Path",
    "format_path",
    "is_system_path",
    "parse_path",
]

Path = tuple[str, ...]
"""A path as its segments; the root is the empty tuple."""

MAXIMUM_SEGMENT_BYTES = 255
MAXIMUM_PATH_BYTES = 4096

SYSTEM_NAMES = frozenset({".svc-system", ".system"})
"""First segments that no file route may name: they answer 404, to everyone, in every method."""

SERVER_CONFIGURATION = ".config"
"""First segment of files that say what the server does; only root changes them."""

DIRECTORY_CONFIGURATION = ".svc-config"
"""Name of the directories whose files say how the files around them are treated."""


def parse_path(text: str) -> Path:
    """Returns the segments of a path.

    Args:
        text: the path as text, percent-decoded already; a leading slash is optional.

    Raises:
        InvalidPath: ``..``, NUL or another control character, a lone surrogate (what is not UTF-8
            became one), a segment over 255 bytes, or a path over 4,096 bytes.
    """
    if not text.isascii():
        text = _normalize(text)
    if not text.isprintable():
        _refuse_control_characters(text)
    segments = tuple([segment for segment in text.split("/") if segment and segment != "."])
    if ".." in segments:
        raise InvalidPath("A path may not hold '..'.", path=_shown(text))
    if len(text) * 4 > MAXIMUM_SEGMENT_BYTES:
        _refuse_excess(segments, text)
    return segments


def format_path(path: Path) -> str:
    """Returns the absolute text of a path: ``/a/b``, or ``/`` for the root."""
    return "/" + "/".join(path)


def is_system_path(path: Path) -> bool:
    """Whether the path lies in the system namespace."""
    return bool(path) and path[0] in SYSTEM_NAMES


def _normalize(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidPath("A path must be valid UTF-8.") from None
    return unicodedata.normalize("NFC", text)


def _refuse_control_characters(text: str) -> None:
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise InvalidPath("A path may not hold control characters.", path=_shown(text))


def _refuse_excess(segments: Path, text: str) -> None:
    total = 0
    for segment in segments:
        size = len(segment.encode("utf-8"))
        if size > MAXIMUM_SEGMENT_BYTES:
            raise InvalidPath(
                f"A path segment may have at most {MAXIMUM_SEGMENT_BYTES} bytes.",
                path=_shown(text),
                limit=MAXIMUM_SEGMENT_BYTES,
            )
        total += size + 1
    if total > MAXIMUM_PATH_BYTES:
        raise InvalidPath(
            f"A path may have at most {MAXIMUM_PATH_BYTES} bytes.",
            path=_shown(text),
            limit=MAXIMUM_PATH_BYTES,
        )


def _shown(text: str) -> str:
    visible = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return visible if len(visible) <= 200 else visible[:200] + "..."
