"""What another node may say that stands at a path: what this one could have stored there itself."""

from __future__ import annotations

import re

from svc.errors import InvalidInput
from svc.plugin import Entry, EntryKind, hash_content
from svc_sync.values import Directory, Value

__all__ = ["check_value"]

_LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""
_MOST_TARGET_BYTES = 4_096
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_EMPTY = hash_content(b"")


def check_value(value: Value) -> None:
    """Refuses a value that no node stores.

    A file's content is checked when it comes; one that is empty, and a link, bring theirs with them. A record
    of a file is the node's own, and never another's.

    Raises:
        InvalidInput: says what is wrong.
    """
    if isinstance(value, Directory):
        _check_times(value.own_ms)
    if not isinstance(value, Entry):
        return
    _check_times(value.created_ms, value.updated_ms)
    if value.record is not None:
        raise InvalidInput("Another node names the record of a file.")
    if value.kind is EntryKind.SYMLINK:
        _check_link(value)
    elif value.content_type is not None and _CONTROL.search(value.content_type):
        raise InvalidInput("Another node has a file whose media type has control characters.")
    elif value.size == 0 and value.hash != _EMPTY:
        raise InvalidInput("Another node has an empty file whose hash is that of another content.")


def _check_link(value: Entry) -> None:
    target = value.target or ""
    try:
        content = target.encode()
    except UnicodeEncodeError:
        content = b""
    if not target.startswith("/") or "\0" in target or not 0 < len(content) <= _MOST_TARGET_BYTES:
        raise InvalidInput("Another node has a link whose target is no path.")
    if (value.hash, value.size) != (hash_content(content), len(content)):
        raise InvalidInput("Another node has a link whose hash is not that of its target.")


def _check_times(*times_ms: int) -> None:
    if any(not 0 <= one <= _LATEST_MS for one in times_ms):
        raise InvalidInput("Another node has a file of a time that no clock shows.")
