"""The index type ``fulltext``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from svc_query.api import LibraryIndexType, LibraryReader, LibraryTail, LibraryWriter

from svc_index_fulltext.analysis import normalize
from svc_index_fulltext.layout import FORMAT
from svc_index_fulltext.reading import FulltextReader
from svc_index_fulltext.tail import FulltextTail
from svc_index_fulltext.writing import FulltextWriter

__all__ = ["FulltextIndexType"]


class FulltextIndexType(LibraryIndexType):
    """The words of texts, ranked by BM25."""

    name = "fulltext"
    format = FORMAT
    options = frozenset({"language", "tokenizer", "stop_words"})

    def normalize(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Checks ``language``, ``tokenizer`` and ``stop_words``."""
        return normalize(options)

    def open_writer(
        self, directory: FilePath, options: Mapping[str, Any], state: bytes | None
    ) -> LibraryWriter:
        """Opens an index to write to it, at a state."""
        return FulltextWriter(directory, options, state)

    def open_reader(self, directory: FilePath, options: Mapping[str, Any], state: bytes) -> LibraryReader:
        """Opens an index as it was at a flush."""
        return FulltextReader(directory, options, state)

    def open_tail(self, options: Mapping[str, Any]) -> LibraryTail:
        """Returns an empty index in memory."""
        return FulltextTail(options)
