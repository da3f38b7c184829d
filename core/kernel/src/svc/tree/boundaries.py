"""Where one node ends and the next begins: a function of the keys alone.

The same entries make the same nodes on every machine, and a change moves only the boundaries near it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xxhash import xxh3_64_intdigest

from svc.tree.node import MAXIMUM_ENTRIES, MINIMUM_ENTRIES

__all__ = ["closed_ends", "is_boundary"]

_MASK = 15


def is_boundary(key: str, level: int) -> bool:
    """Whether a node of the level that holds enough entries ends after this key."""
    return xxh3_64_intdigest(key.encode(), level) & _MASK == 0


def closed_ends(keys: Sequence[str], level: int) -> list[int]:
    """Returns where nodes end among ``keys``, of which the first begins a node: behind each node's last key.

    What follows the last of these ends is a node only if no keys follow.
    """
    ends: list[int] = []
    start, count = 0, len(keys)
    while count - start >= MINIMUM_ENTRIES:
        stop = min(start + MAXIMUM_ENTRIES, count)
        for position in range(start + MINIMUM_ENTRIES - 1, stop):
            if xxh3_64_intdigest(keys[position].encode(), level) & _MASK == 0:
                stop = position + 1
                break
        else:
            if stop - start < MAXIMUM_ENTRIES:
                break
        ends.append(stop)
        start = stop
    return ends
