"""Small JSON documents in the system tree, and the condition under which one is replaced."""

from __future__ import annotations

import time
from typing import TypeVar

import msgspec

from svc.plugin import Condition, Entry, Path, Version

__all__ = ["absent", "decode", "encode", "now_ms", "read", "same"]

T = TypeVar("T", bound=msgspec.Struct)


def now_ms() -> int:
    """The present time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def read(system: Version, path: Path, form: type[T]) -> tuple[T, Entry] | None:
    """Returns the document at a path with its entry; None when there is none, or not of this form."""
    entry = system.get(path)
    if entry is None:
        return None
    found = decode(system, entry, form)
    return None if found is None else (found, entry)


def decode(system: Version, entry: Entry, form: type[T]) -> T | None:
    """Returns the document that an entry holds; None when it is not of this form."""
    try:
        return msgspec.json.decode(system.read_all(entry), type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def encode(document: msgspec.Struct) -> bytes:
    """Returns a document as it is stored."""
    return msgspec.json.encode(document)


def same(entry: Entry) -> Condition:
    """The condition that a path still holds what was read."""
    return Condition(if_match=(entry.hash.hex(),))


def absent() -> Condition:
    """The condition that nothing stands at a path."""
    return Condition(if_none_match=("*",))
