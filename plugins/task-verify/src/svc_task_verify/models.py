"""What the operation of the plugin answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["Damage", "Verification"]


class Damage(Struct, frozen=True, kw_only=True):
    """What a verification found damaged: how much, and the first of it.

    ``paths`` are of files and directories, ``hashes`` of objects, ``regions`` pairs of offsets in the log
    between which nothing can be read, and ``commits`` numbers of those whose records can't be.
    """

    found_at: Annotated[int, Meta(description="Unix milliseconds.")]
    count: int
    paths: list[str]
    hashes: list[str]
    regions: list[tuple[int, int]]
    commits: list[int]


class Verification(Struct, frozen=True):
    """What the last verification that found something says; null where nothing is damaged."""

    damage: Damage | None
