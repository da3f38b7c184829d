"""The index type ``vector``."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from pyroaring import BitMap
from svc_query.api import IndexDocument, LibraryIndexType, LibraryReader, LibraryTail, LibraryWriter

from svc.errors import InvalidInput
from svc.plugin import Path
from svc_index_vector.measures import METRICS, Floats
from svc_index_vector.segments import Segment, collect
from svc_index_vector.writing import VectorWriter, segments_of

__all__ = ["MAXIMUM_DIMENSIONS", "VectorIndexType", "VectorReader", "VectorTail"]

MAXIMUM_DIMENSIONS = 4_096
_ROW_OVERHEAD = 16


class VectorIndexType(LibraryIndexType):
    """Arrays of numbers, found by nearness."""

    name = "vector"
    format = 1
    options = frozenset({"dimensions", "metric"})

    def normalize(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Checks ``dimensions``, which must be there, and ``metric``."""
        dimensions = options.get("dimensions")
        if (
            isinstance(dimensions, bool)
            or not isinstance(dimensions, int)
            or not 1 <= dimensions <= MAXIMUM_DIMENSIONS
        ):
            raise InvalidInput(
                f"A vector index needs its number of dimensions, 1 to {MAXIMUM_DIMENSIONS:,}.",
                field="dimensions",
            )
        metric = options.get("metric", "cosine")
        if not isinstance(metric, str) or metric not in METRICS:
            raise InvalidInput(f"The metric is one of {', '.join(METRICS)}.", field="metric")
        return {"dimensions": dimensions, "metric": metric}

    def open_writer(
        self, directory: FilePath, options: Mapping[str, Any], state: bytes | None
    ) -> LibraryWriter:
        """Opens an index to write to it, at a state."""
        return VectorWriter(directory, options, state)

    def open_reader(self, directory: FilePath, options: Mapping[str, Any], state: bytes) -> LibraryReader:
        """Opens an index as it was at a flush."""
        names = segments_of(state)
        segments = [Segment.open(directory / name, options["metric"]) for name in names]
        size = sum(entry.stat().st_size for name in names for entry in directory.glob(f"{name}.*"))
        return VectorReader(options, segments, size)

    def open_tail(self, options: Mapping[str, Any]) -> LibraryTail:
        """Returns an empty index in memory."""
        return VectorTail(options)


class VectorReader(LibraryReader):
    """Searches some segments.

    Args:
        options: of the index.
        segments: what is searched.
        size: bytes of them.
    """

    def __init__(self, options: Mapping[str, Any], segments: Sequence[Segment], size: int) -> None:
        self.dimensions: int = options["dimensions"]
        self._segments = segments
        self._size = size

    @property
    def size(self) -> int:
        """Bytes of the files, or in memory."""
        return self._size

    @property
    def count(self) -> int:
        """How many vectors there are."""
        return sum(len(segment.rows.numbers) for segment in self._segments)

    def documents(self) -> BitMap:
        """Returns the documents that have a vector."""
        return BitMap.union(BitMap(), *(BitMap(segment.rows.numbers) for segment in self._segments))

    def nearest(self, wanted: Floats, limit: int, below: Sequence[Path] | None) -> list[tuple[int, float]]:
        """Returns (number, score) of the nearest documents, best first. Blocks."""
        found: dict[int, float] = {}
        for segment in self._segments:
            found.update(segment.nearest(wanted, limit, below))
        return heapq.nsmallest(limit, found.items(), key=lambda item: (-item[1], item[0]))

    def scores(self, wanted: Floats, documents: BitMap) -> dict[int, float]:
        """Returns the scores of those of some documents that have a vector. Blocks."""
        numbers = np.array(documents.to_array(), dtype=np.uint32)
        found: dict[int, float] = {}
        for segment in self._segments:
            found.update(segment.scored(wanted, numbers))
        return found


class VectorTail(LibraryTail):
    """Some thousands of documents in memory; all of them are looked at."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._documents: dict[int, IndexDocument] = {}

    def add(self, documents: Iterable[IndexDocument]) -> None:
        """Adds documents."""
        self._documents.update((document.id, document) for document in documents)

    def reader(self, beside: LibraryReader | None = None) -> LibraryReader:
        """Returns a reader; nearness does not depend on other documents."""
        rows = collect(list(self._documents.values()), self._options["dimensions"])
        size = int(rows.vectors.nbytes) + _ROW_OVERHEAD * len(rows.numbers)
        return VectorReader(self._options, [Segment(rows, self._options["metric"])], size)
