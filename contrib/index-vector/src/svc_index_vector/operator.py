"""The operator ``nearest``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyroaring import BitMap
from svc_query.api import Leaf, Predicate, QueryOperator, RankedPredicate, Value

from svc.errors import InvalidInput
from svc.plugin import Path
from svc_index_vector.index_type import MAXIMUM_DIMENSIONS, VectorReader
from svc_index_vector.measures import Floats, as_vector, score_of

__all__ = ["NearestOperator", "NearestPredicate"]

INDEX_TYPE = "vector"


class NearestOperator(QueryOperator):
    """Documents by how near a vector of theirs is to a given one."""

    name = "nearest"
    index_types = ((INDEX_TYPE,),)
    options = frozenset({"k"})

    def compile(self, leaf: Leaf) -> Predicate:
        """Returns the leaf, ready to be asked.

        Raises:
            InvalidInput: the value is no vector of the index's length, or ``k`` no number above 0.
        """
        options = leaf.index_options.get(INDEX_TYPE, {})
        dimensions = options.get("dimensions")
        vector = as_vector(leaf.value, dimensions)
        if vector is None or len(vector) > MAXIMUM_DIMENSIONS:
            length = f"{dimensions}" if dimensions else f"1 to {MAXIMUM_DIMENSIONS:,}"
            raise InvalidInput(
                f"What is nearest in {leaf.field!r} is asked with an array of {length} numbers.",
                field="value",
            )
        k = leaf.options.get("k")
        if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
            raise InvalidInput(f"'k' for {leaf.field!r} is how many documents match: 1 or more.", field="k")
        return NearestPredicate(vector, options.get("metric", "cosine"), k)


class NearestPredicate(RankedPredicate):
    """All documents that have a vector, the nearest first; with ``k``, only so many of each index.

    Args:
        wanted: the vector.
        metric: of the index.
        k: how many of an index match; None for all.
    """

    certain = True

    def __init__(self, wanted: Floats, metric: str, k: int | None) -> None:
        self._wanted = wanted
        self._metric = metric
        self._k = k

    def test(self, value: Value) -> float | None:
        """Returns how near a vector is; a single one is always among the nearest."""
        return self.test_all((value,))

    def test_all(self, values: Sequence[Value]) -> float | None:
        """Returns how near the nearest vector of a document is."""
        return score_of(self._metric, self._wanted, values)

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        """Returns how many documents match, at most."""
        reader = self._reader(indexes)
        if reader is None:
            return None
        return reader.count if self._k is None else min(reader.count, self._k)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        """Returns the documents that match."""
        reader = self._reader(indexes)
        if reader is None:
            return None
        if self._k is None:
            return reader.documents()
        return BitMap([number for number, _ in reader.nearest(self._wanted, self._k, None)])

    def best(
        self, indexes: Mapping[str, Any], limit: int, *, below: Sequence[Path] | None = None
    ) -> list[tuple[int, float]]:
        """Returns the nearest documents; with ``k`` and ``below``, the ``k`` nearest below."""
        reader = self._reader(indexes)
        limit = limit if self._k is None else min(limit, self._k)
        return [] if reader is None else reader.nearest(self._wanted, limit, below)

    def scores(self, indexes: Mapping[str, Any], documents: BitMap) -> dict[int, float]:
        """Returns the scores of those of some documents that match."""
        reader = self._reader(indexes)
        if reader is None:
            return {}
        if self._k is None:
            return reader.scores(self._wanted, documents)
        nearest = reader.nearest(self._wanted, self._k, None)
        return {number: score for number, score in nearest if number in documents}

    def _reader(self, indexes: Mapping[str, Any]) -> VectorReader | None:
        """Returns the reader, if its vectors are as long as that which is wanted."""
        reader = indexes.get(INDEX_TYPE)
        if isinstance(reader, VectorReader) and reader.dimensions == len(self._wanted):
            return reader
        return None
