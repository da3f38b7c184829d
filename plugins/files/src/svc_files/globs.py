"""Path patterns: ``*`` and ``?`` inside a segment, ``[...]`` for one character, ``**`` across segments.

A pattern is compiled once and compared with the segments of paths. A ``**`` is a place that is kept while a
path is read. So a match takes time proportional to pattern times path, and no pattern can hold a worker.
"""

from __future__ import annotations

import re

from svc.errors import InvalidInput
from svc.plugin import Path, segment_expression

__all__ = ["MAXIMUM_PATTERN", "Glob", "PathMatcher"]

MAXIMUM_PATTERN = 1024
"""Longest pattern, in characters."""


class Glob:
    """A compiled pattern; immutable, may be shared by threads. A leading slash ties it to the full path.

    Raises InvalidInput for a pattern that is empty or longer than ``MAXIMUM_PATTERN``.
    """

    __slots__ = ("_absolute", "_end", "_name", "_segments", "_stars")

    def __init__(self, pattern: str) -> None:
        if not pattern or len(pattern) > MAXIMUM_PATTERN:
            raise InvalidInput(
                f"A glob has 1 to {MAXIMUM_PATTERN} characters.", field="glob", limit=MAXIMUM_PATTERN
            )
        self._absolute = pattern.startswith("/")
        parts = [part for part in pattern.split("/") if part and part != "."]
        parts = [part for at, part in enumerate(parts) if part != "**" or at == 0 or parts[at - 1] != "**"]
        self._stars = sum(1 << at for at, part in enumerate(parts) if part == "**")
        self._end = 1 << len(parts)
        places: dict[str, int] = {}
        for at, part in enumerate(parts):
            if part != "**":
                places[part] = places.get(part, 0) | 1 << at
        self._segments = [
            (re.compile(segment_expression(part, classes=True)).fullmatch, mask)
            for part, mask in places.items()
        ]
        is_name = len(parts) == 1 and self._segments and not self._absolute
        self._name = self._segments[0][0] if is_name else None

    def matches(self, full: Path, below: int) -> bool:
        """Whether the pattern fits the name, the path below the listed directory, or the full path."""
        return PathMatcher(self, below).matches(full)

    def _behind(self, places: int, name: str) -> int:
        """The places in the pattern that are reached from others by one segment of a path.

        Places are bits of an integer: bit *n* says that the first *n* segments fit what was read so far.
        """
        reached = places & self._stars
        for match, mask in self._segments:
            if places & mask and match(name) is not None:
                reached |= (places & mask) << 1
        return reached | (reached & self._stars) << 1


class PathMatcher:
    """Compares paths with a pattern, one after the other; fast when they come in the order of a walk.

    What the pattern makes of a directory is found once, so a path costs one step for its name, however deep
    it lies. Not for use by several threads.
    """

    __slots__ = ("_below", "_directory", "_glob", "_places")

    def __init__(self, glob: Glob, below: int) -> None:
        self._glob = glob
        self._below = below
        start = 1 | (glob._stars & 1) << 1
        self._directory: Path = ()
        self._places = [(start, 0)]
        """For the directory and each one above it: places for the full path, and for the relative one."""

    def matches(self, full: Path) -> bool:
        """Whether the pattern fits the name, the path below the listed directory, or the full path."""
        glob = self._glob
        if glob._name is not None:
            return bool(full) and glob._name(full[-1]) is not None
        if not full:
            return any(places & glob._end for places in self._places[0])
        directory = full[:-1]
        if directory != self._directory:
            self._enter(directory)
        return any(glob._behind(places, full[-1]) & glob._end for places in self._places[-1] if places)

    def may_fit_below(self, directory: Path) -> bool:
        """Whether the pattern could fit anything below a directory, at or below the listed one."""
        glob = self._glob
        if glob._name is not None:
            return True
        if directory != self._directory:
            self._enter(directory)
        return any(places & (glob._end - 1) for places in self._places[-1])

    def _enter(self, directory: Path) -> None:
        glob = self._glob
        common = 0
        for left, right in zip(directory, self._directory, strict=False):
            if left != right:
                break
            common += 1
        del self._places[common + 1 :]
        start = self._places[0][0]
        for level, name in enumerate(directory[common:], start=common + 1):
            whole, relative = self._places[-1]
            whole, relative = glob._behind(whole, name), relative and glob._behind(relative, name)
            if level == self._below and not glob._absolute:
                relative = start
            self._places.append((whole, relative))
        self._directory = directory
