"""Vectors of some documents in files that never change, and the search among them.

    <name>.vectors.npy    32-bit floats, a row for each vector
    <name>.numbers.npy    number of the document of each row
    <name>.folders.npy    which folder each row's document is in
    <name>.paths.npy      a hash of each row's path
    <name>.names          the folders, as JSON
    <name>.graph          the library's graph; small segments have none

A small segment is searched by looking at all of it, which is exact. In a large one the library finds the rows
that are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from svc_query.api import IndexDocument
from usearch.index import Index

from svc.plugin import Path
from svc_index_vector.measures import METRICS, Floats, Metric, as_vector, scores_of

__all__ = ["EXACT_ROWS", "Rows", "Segment", "collect", "join"]

EXACT_ROWS = 4_096
"""Larger segments have a graph."""

_ALL_FROM = 10
"""Whoever wants more than a tenth of the rows is faster by looking at all of them."""

_ENDINGS = (".vectors.npy", ".numbers.npy", ".folders.npy", ".paths.npy", ".names")
_GRAPH = ".graph"

Array = npt.NDArray[Any]


class Rows(NamedTuple):
    """Vectors in memory, or in files that are mapped.

    Attributes:
        vectors: one a row.
        numbers: of the documents.
        folders: places in ``names``.
        paths: hashes of the paths.
        names: the folders.
    """

    vectors: Floats
    numbers: Array
    folders: Array
    paths: Array
    names: Sequence[Path]

    def below(self, places: Sequence[Path]) -> Array:
        """Returns the rows at or below some paths."""
        wanted = frozenset(places)
        lengths = sorted({len(place) for place in wanted})
        folders = [
            number
            for number, name in enumerate(self.names)
            if any(name[:length] in wanted for length in lengths if length <= len(name))
        ]
        hashes = np.array([_hash(place) for place in places], dtype=np.uint64)
        found: Array = np.flatnonzero(np.isin(self.folders, folders) | np.isin(self.paths, hashes))
        return found

    def without(self, dead: Array) -> Rows:
        """Returns the rows whose documents are not dead."""
        kept = ~np.isin(self.numbers, dead)
        return Rows(self.vectors[kept], self.numbers[kept], self.folders[kept], self.paths[kept], self.names)


def collect(documents: Sequence[IndexDocument], dimensions: int) -> Rows:
    """Returns the vectors of some documents; values that are none are left out."""
    names: dict[Path, int] = {}
    vectors: list[Floats] = []
    rest: list[tuple[int, int, int]] = []
    for document in documents:
        for value in document.values:
            vector = as_vector(value, dimensions)
            if vector is not None:
                folder = names.setdefault(document.path[:-1], len(names))
                vectors.append(vector)
                rest.append((document.id, folder, _hash(document.path)))
    numbers, folders, paths = zip(*rest, strict=True) if rest else ((), (), ())
    return Rows(
        np.stack(vectors) if vectors else np.zeros((0, dimensions), dtype=np.float32),
        np.array(numbers, dtype=np.uint32),
        np.array(folders, dtype=np.uint32),
        np.array(paths, dtype=np.uint64),
        list(names),
    )


def join(parts: Sequence[Rows]) -> Rows:
    """Returns the rows of several segments in one; at least one."""
    names: dict[Path, int] = {}
    folders = []
    for part in parts:
        places = [names.setdefault(name, len(names)) for name in part.names]
        folders.append(np.array(places, dtype=np.uint32)[part.folders] if places else part.folders)
    return Rows(
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate(folders),
        np.concatenate([part.paths for part in parts]),
        list(names),
    )


class Segment:
    """Rows that can be searched.

    Attributes:
        rows: the vectors and whose they are.
    """

    def __init__(self, rows: Rows, metric: Metric, graph: Index | None = None) -> None:
        self.rows = rows
        self._metric = metric
        self._graph = graph

    @classmethod
    def write(cls, stem: FilePath, rows: Rows, metric: Metric) -> None:
        """Writes the files of a segment."""
        for ending, array in zip(_ENDINGS, rows[:4], strict=False):
            np.save(_file(stem, ending), array)
        _file(stem, ".names").write_bytes(msgspec.json.encode(rows.names))
        if len(rows.numbers) > EXACT_ROWS:
            graph = Index(ndim=rows.vectors.shape[1], metric=METRICS[metric], dtype="f32")
            graph.add(np.arange(len(rows.numbers)), rows.vectors, threads=1)
            graph.save(str(_file(stem, _GRAPH)))

    @classmethod
    def open(cls, stem: FilePath, metric: Metric) -> Segment:
        """Maps the files of a segment.

        Raises:
            FileNotFoundError: one of them is gone.
        """
        arrays = [np.load(_file(stem, ending), mmap_mode="r") for ending in _ENDINGS[:4]]
        names = msgspec.json.decode(_file(stem, ".names").read_bytes(), type=list[tuple[str, ...]])
        rows = Rows(*arrays, names)
        graph = None
        if len(rows.numbers) > EXACT_ROWS:
            if not _file(stem, _GRAPH).exists():
                raise FileNotFoundError(_file(stem, _GRAPH))
            graph = Index.restore(str(_file(stem, _GRAPH)), view=True)
        return cls(rows, metric, graph)

    def nearest(self, wanted: Floats, limit: int, below: Sequence[Path] | None) -> dict[int, float]:
        """Returns some documents and their scores, the nearest among them; ``limit`` or more if there are."""
        rows = self.rows
        among = None if below is None else rows.below(below)
        size = len(rows.numbers)
        if (
            self._graph is None
            or limit * _ALL_FROM > size
            or (among is not None and len(among) * _ALL_FROM < size)
        ):
            return self._scored(wanted, among)
        count = limit
        while count * _ALL_FROM <= size:
            found = np.asarray(self._graph.search(wanted, count, threads=1).keys, dtype=np.int64)
            scored = self._scored(wanted, found if among is None else np.intersect1d(found, among))
            if len(scored) >= limit:
                return scored
            count *= 4
        return self._scored(wanted, among)

    def scored(self, wanted: Floats, documents: Array) -> dict[int, float]:
        """Returns the scores of those of some documents that are here."""
        return self._scored(wanted, np.flatnonzero(np.isin(self.rows.numbers, documents)))

    def _scored(self, wanted: Floats, places: Array | None) -> dict[int, float]:
        """Returns documents with the score of the nearest of their vectors."""
        vectors = self.rows.vectors if places is None else self.rows.vectors[places]
        numbers = self.rows.numbers if places is None else self.rows.numbers[places]
        scores = scores_of(self._metric, wanted, vectors)
        # Of pairs with the same key, the last stays: so the nearest comes last.
        order = np.argsort(scores)
        return dict(zip(numbers[order].tolist(), scores[order].tolist(), strict=True))


def _file(stem: FilePath, ending: str) -> FilePath:
    return stem.with_name(stem.name + ending)


def _hash(path: Path) -> int:
    return int.from_bytes(
        blake2b("/".join(path).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )
