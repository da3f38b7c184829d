"""How large the index is, as who works on it says for all processes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from svc.plugin import StateFile, ViewStorage
from svc_query.indexing import keys
from svc_query.indexing.rows import State

__all__ = ["IndexSize", "size_file", "size_of"]


class IndexSize(msgspec.Struct, frozen=True):
    """Numbers of the whole index.

    Attributes:
        indexes: how many there are.
        directories: with a configuration.
        documents: that live.
        unflushed: documents that are in no file of an index yet.
        tail_bytes: what those take, about.
        flushes: how many there were.
    """

    indexes: int = 0
    directories: int = 0
    documents: int = 0
    unflushed: int = 0
    tail_bytes: int = 0
    flushes: int = 0


def size_of(storage: ViewStorage, state: State) -> IndexSize:
    """Returns the size of an index."""
    return IndexSize(
        sum(1 for _ in storage.scan(keys.INDEX)),
        sum(1 for _ in storage.scan(keys.DIRECTORY)),
        state.documents,
        state.next_number - state.flushed,
        state.tail_bytes,
        state.flushes,
    )


def size_file(state_directory: Path) -> StateFile[IndexSize]:
    """The file that says it."""
    return StateFile(state_directory / "query" / "size.json", IndexSize)
