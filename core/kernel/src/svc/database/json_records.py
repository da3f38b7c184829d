"""Records that plugins keep as JSON in the system tree: each content is decoded once in a process."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar, cast

import msgspec

from svc.database.operations import Condition
from svc.database.version import Version
from svc.hashing import Hash
from svc.tree import Entry, EntryKind

__all__ = ["read_record", "same_content"]

_MOST_KNOWN = 100_000

T = TypeVar("T", bound=msgspec.Struct)

_UNKNOWN: Any = object()
_known: OrderedDict[tuple[Hash, type], msgspec.Struct | None] = OrderedDict()


def read_record(version: Version, entry: Entry | None, form: type[T], *, keep: bool = True) -> T | None:
    """Returns the record that an entry holds; blocks as a read does, the first time.

    Args:
        version: the tree of the entry.
        entry: a file, or None.
        form: the frozen struct that the JSON is decoded into; what it shares with others must not change.
        keep: whether the record is kept in memory for who reads the same content again.

    Returns:
        The record; None when there is none, or none of this form.
    """
    if entry is None or entry.kind is not EntryKind.FILE:
        return None
    key = (entry.hash, form)
    known = _known.get(key, _UNKNOWN)
    if known is not _UNKNOWN:
        return cast("T | None", known)
    try:
        record = msgspec.json.decode(version.read_all(entry), type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        record = None
    if keep:
        # Each is one step of the interpreter: no lock is needed, whichever thread or greenlet is here.
        _known[key] = record
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return record


def same_content(entry: Entry | None) -> Condition:
    """Returns the condition that an entry is still what it was when it was read; None was nothing."""
    if entry is None:
        return Condition(if_none_match=("*",))
    return Condition(if_match=(entry.hash.hex(),))
