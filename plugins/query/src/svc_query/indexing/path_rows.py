"""Rows of the documents in the order of their paths."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from svc.plugin import Path, ViewStorage
from svc_query.indexing import keys

__all__ = ["is_ordered", "paths_in_order"]

_ORDERED_BYTES = 447
"""As much of a key as counts for the order of rows, less the first byte."""

_NUMBER = struct.Struct(">I")


def paths_in_order(
    storage: ViewStorage, path: Path, after: bytes | None = None
) -> Iterator[tuple[bytes, int]]:
    """Yields (key of the path, number) of the documents at and below a path, in path order.

    Rows are in the order of the first bytes of their keys only: a run of long ones is sorted here.
    """
    exact = keys.key_of_path(path)
    if path and (after is None or after < exact):
        value = storage.get(keys.PATH + exact)
        if value is not None:
            yield exact, _NUMBER.unpack(value)[0]
    below = keys.below_key(path)
    start = None if after is None or after < below else keys.PATH + after
    if start is not None and len(start) > _ORDERED_BYTES:
        # What shares its first bytes may stand before it.
        start = start[: _ORDERED_BYTES + 1]
    run: list[tuple[bytes, int]] = []
    for stored, value in storage.scan(keys.PATH + below, start):
        key = stored[1:]
        if after is not None and key <= after:
            continue
        number = _NUMBER.unpack(value)[0]
        if run and run[0][0][:_ORDERED_BYTES] != key[:_ORDERED_BYTES]:
            yield from sorted(run)
            run = []
        if len(key) >= _ORDERED_BYTES:
            run.append((key, number))
        else:
            yield key, number
    yield from sorted(run)


def is_ordered(key: bytes) -> bool:
    """Whether a path, given as key, surely stands in its place among the rows."""
    return len(key) < _ORDERED_BYTES
