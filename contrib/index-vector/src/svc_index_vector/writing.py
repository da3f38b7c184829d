"""Writes an index as segments: one for each flush, and one of many once there are many of a size."""

from __future__ import annotations

import itertools
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any

import msgspec
import numpy as np
from pyroaring import BitMap
from svc_query.api import IndexDocument, LibraryWriter

from svc.errors import CorruptRecord
from svc_index_vector.segments import Segment, collect, join

__all__ = ["VectorWriter", "segments_of"]

_TOGETHER = 8
"""So many segments of about a size become one."""

_DEAD_PART = 0.5


class _Part(msgspec.Struct, frozen=True):
    name: str
    rows: int


class _State(msgspec.Struct, frozen=True):
    parts: list[_Part]
    above: int = 0


def _decode(state: bytes) -> _State:
    try:
        return msgspec.json.decode(state, type=_State)
    except msgspec.DecodeError as error:
        raise CorruptRecord("The state of a vector index is not one.") from error


def segments_of(state: bytes) -> list[str]:
    """Returns the names of the segments of a state.

    Raises:
        CorruptRecord: it is none.
    """
    return [part.name for part in _decode(state).parts]


class VectorWriter(LibraryWriter):
    """Writes one index. What is in no state that counts is removed when the next writer opens.

    Args:
        directory: of the index.
        options: as ``normalize`` of the index type returns them.
        state: where to begin; None with an empty index.
    """

    def __init__(self, directory: FilePath, options: Mapping[str, Any], state: bytes | None) -> None:
        self._directory = directory
        self._metric: str = options["metric"]
        self._dimensions: int = options["dimensions"]
        self._state = _State([]) if state is None else _decode(state)
        self._base = self._state
        self._pending: dict[int, IndexDocument] = {}
        self._known: BitMap | None = None
        self._remove_but(self._state)

    def add(self, documents: Iterable[IndexDocument]) -> None:
        """Adds documents. One that is there already stays as it is, since a number means one document."""
        for document in documents:
            if document.id >= self._state.above or document.id not in self._numbers():
                self._pending[document.id] = document

    def flush(self, dead: BitMap) -> bytes:
        """Writes a segment of what was added, and joins segments; a large one takes its time."""
        parts = list(self._state.parts)
        rows = collect(list(self._pending.values()), self._dimensions)
        above = max([self._state.above, *(number + 1 for number in self._pending)])
        if len(rows.numbers):
            parts.append(self._written(rows))
        before, self._state = self._state, _State(self._joined(parts, dead), above)
        self._pending.clear()
        self._known = None
        self._remove_but(self._base, before, self._state)
        return msgspec.json.encode(self._state)

    def close(self) -> None:
        """Forgets what was added since the last flush."""
        self._pending.clear()

    def _numbers(self) -> BitMap:
        """Returns the documents that the state has."""
        if self._known is None:
            opened = [self._open(part).rows.numbers for part in self._state.parts]
            self._known = BitMap.union(BitMap(), *(BitMap(numbers) for numbers in opened))
        return self._known

    def _open(self, part: _Part) -> Segment:
        try:
            return Segment.open(self._directory / part.name, self._metric)
        except FileNotFoundError as error:
            raise CorruptRecord("A segment of a vector index is gone: it must be made anew.") from error

    def _written(self, rows: Any) -> _Part:
        name = secrets.token_hex(8)
        Segment.write(self._directory / name, rows, self._metric)
        return _Part(name, len(rows.numbers))

    def _joined(self, parts: list[_Part], dead: BitMap) -> list[_Part]:
        """Joins segments of about a size while there are many, and those that are mostly dead."""
        while True:
            sizes: dict[int, list[_Part]] = defaultdict(list)
            for part in parts:
                sizes[part.rows.bit_length() // 3].append(part)
            group = next((same for same in sizes.values() if len(same) >= _TOGETHER), None)
            if group is None:
                group = [part for part in parts if self._is_mostly_dead(part, dead)]
            if not group:
                return parts
            gone = np.array(dead.to_array(), dtype=np.uint32)
            rows = join([self._open(part).rows.without(gone) for part in group])
            parts = [part for part in parts if part not in group]
            if len(rows.numbers):
                parts.append(self._written(rows))

    def _is_mostly_dead(self, part: _Part, dead: BitMap) -> bool:
        if not dead:
            return False
        numbers = BitMap(self._open(part).rows.numbers)
        return numbers.intersection_cardinality(dead) > _DEAD_PART * len(numbers)

    def _remove_but(self, *states: _State) -> None:
        kept = set(itertools.chain.from_iterable((part.name for part in state.parts) for state in states))
        for file in self._directory.iterdir():
            if file.name.partition(".")[0] not in kept:
                file.unlink()
