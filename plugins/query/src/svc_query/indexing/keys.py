"""Keys of the view's rows.

One byte says what a row is; paths stand in them with 0x01 between segments, which no segment holds, so that
the order of keys is that of paths.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from svc.plugin import Path

__all__ = [
    "CONFIGURATION",
    "CONFIGURATION_HASH",
    "CONFIGURATION_USE",
    "CONFIGURED",
    "DEAD",
    "DIRECTORY",
    "DOCUMENT",
    "FAILURE",
    "GUESS",
    "INDEX",
    "JOB",
    "OWNED",
    "OWNER_SIZE",
    "PATH",
    "REINDEX",
    "STATE",
    "TEXT",
    "UNTAKEN",
    "WAITING",
    "WORK",
    "below_key",
    "canonical_options",
    "key_of_path",
    "number_key",
    "path_of_key",
    "text_key",
]

STATE = b"s"
"""The state of the table (``rows.State``)."""

WORK = b"w"
"""A token that each piece of work replaces: whoever goes on in the middle sees whether it was the last."""

PATH = b"p"
"""``p`` path: number of the document."""

DOCUMENT = b"~"
"""``~`` number: ``rows.DocumentRow``. Behind all others, so that a new one is the last row of all."""

TEXT = b"t"
"""``t`` number, position of the field: values that are too long for the document's row."""

DEAD = b"x"
"""``x`` high half of the number: bitmap of dead numbers."""

UNTAKEN = b"n"
"""``n`` number of an index: bitmap of the documents whose values it did not take."""

CONFIGURATION = b"c"
"""``c`` number: ``rows.ConfigurationRow``."""

CONFIGURATION_HASH = b"h"
"""``h`` hash of a configuration's row: its number."""

CONFIGURATION_USE = b"u"
"""``u`` number of a configuration: documents that have it."""

DIRECTORY = b"g"
"""``g`` path of a directory: ``rows.DirectoryRow``, its ``indexes.json``."""

INDEX = b"i"
"""``i`` number: ``rows.IndexRow``."""

JOB = b"j"
"""``j`` number: ``rows.JobRow``."""

WAITING = b"q"
"""``q`` path: number of the document whose file waits for its parser, and who wrote it, if known."""

OWNED = b"o"
"""``o`` owner path: a file that waits, by who wrote it."""

OWNER_SIZE = 8
"""Bytes of an owner, a hash of the user's id."""

FAILURE = b"e"
"""``e`` path: ``rows.FailureRow``."""

GUESS = b"y"
"""``y`` path: name of the encoding that was guessed for the text of the file."""

REINDEX = b"r"
"""``r`` name: ``rows.ReindexRow``, a reindex that is under way."""

CONFIGURED = b"f"
"""``f`` path of a directory whose configuration has changed: number of the commit, for whoever
reindexes then."""

_NUMBER = struct.Struct(">I")


def key_of_path(path: Path) -> bytes:
    """Returns a path as it stands in keys and as term of ``@path``."""
    return "\x01".join(path).encode()


def path_of_key(key: bytes) -> Path:
    """Returns the path of what ``key_of_path`` gave."""
    return tuple(key.decode().split("\x01")) if key else ()


def below_key(path: Path) -> bytes:
    """Returns what the keys of all paths below a directory begin with, and no others."""
    return key_of_path(path) + b"\x01" if path else b""


def number_key(kind: bytes, number: int) -> bytes:
    """Returns the key of a row that has a number."""
    return kind + _NUMBER.pack(number)


def text_key(number: int, position: int) -> bytes:
    """Returns the key of long values."""
    return TEXT + _NUMBER.pack(number) + position.to_bytes(2, "big")


def canonical_options(options: Mapping[str, Any]) -> str:
    """Returns options as text that is the same for the same options."""
    return json.dumps(options, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
