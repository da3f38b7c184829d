"""What comes of a parse: a document, or a failure in words."""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec

__all__ = ["MAXIMUM_FAILURE", "ParseResult", "describe_error", "mebibytes", "readable"]

MAXIMUM_FAILURE = 300
"""Characters of a message."""

_MAXIMUM_WORDS = 200


class ParseResult(msgspec.Struct, frozen=True):
    """What came of one parse: a document of values that JSON has, or a sentence that says why there is none.

    ``transient`` says that the failure says nothing about the file, so that another attempt may succeed: the
    pool was closed, or no child process could be started. ``late``: it took longer than it may. ``part`` says
    why the document is not all of it, ``guess`` which encoding was guessed.
    """

    document: Any = None
    failure: str | None = None
    transient: bool = False
    part: str | None = None
    late: bool = False
    guess: str | None = None


def readable(text: str, limit: int = MAXIMUM_FAILURE) -> str:
    """Returns a text as one line without control characters, of at most ``limit`` characters."""
    words = " ".join("".join(_shown(character) for character in text[: 4 * limit]).split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def _shown(character: str) -> str:
    return " " if unicodedata.category(character) in ("Cc", "Cs", "Cf", "Co", "Cn", "Zl", "Zp") else character


def mebibytes(size: int) -> str:
    """Returns a size as people read it."""
    return f"{size / (1 << 20):,.0f} MiB" if size >= 1 << 20 else f"{size:,} bytes"


def describe_error(name: str, error: BaseException, memory: int | None = None) -> str:
    """Returns what a parser raised, as a sentence."""
    if isinstance(error, MemoryError):
        limit = "there is" if memory is None else mebibytes(memory)
        return f"The parser {name} needs more memory for it than {limit}."
    if isinstance(error, RecursionError):
        return f"The parser {name} can't read it: it nests too deeply."
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return f"The parser {name} wanted to end its process."
    try:
        text = readable(str(error), _MAXIMUM_WORDS)
    except Exception:  # noqa: BLE001
        text = ""
    if not isinstance(error, ValueError) or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"The parser {name} can't read it: {text.rstrip('.')}."
