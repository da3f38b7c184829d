"""Glob patterns of paths and of their segments, as regular expressions that no pattern can make slow.

In a segment ``*`` stands for any characters and ``?`` for one. What is between two stars is an atomic group:
the first place where it fits leaves most to what follows, so no other place need be tried. A match takes
time proportional to pattern times text. Patterns are compared in the Unicode form of paths.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import takewhile

from svc.paths import Path

__all__ = ["PathGlob", "segment_expression"]


def segment_expression(pattern: str, *, classes: bool) -> str:
    """Returns a regular expression for a segment of a path; the caller anchors it at both ends.

    Args:
        pattern: the segment's pattern, without a slash.
        classes: whether ``[...]`` stands for one of the characters in it; else a bracket is a character.
    """
    runs = ["".join(map(_atom, run)) for run in _split_stars(_composed(pattern), classes)]
    if len(runs) == 1:
        return runs[0]
    middle = "".join(f"(?>[^/]*?{run})" for run in runs[1:-1] if run)
    return f"{runs[0]}{middle}[^/]*{runs[-1]}"


class PathGlob:
    """A glob over whole paths. ``*`` and ``?`` stay within a segment.

    ``**`` as a segment takes any number of them, and at the end of a glob also none, so that ``/a/**`` holds
    ``/a``. A bracket is a character.

    Args:
        segments: of the glob, in order.

    Attributes:
        matches: whether the glob fits the absolute text of a path, as anything true or None; the compiled
            expression's own method, for many globs are tried for one path.
        literal: its segments before the first with a wildcard: whatever it fits lies at or below them.
    """

    __slots__ = ("_segments", "literal", "matches")

    def __init__(self, segments: Sequence[str]) -> None:
        segments = tuple(map(_composed, segments))
        self.matches: Callable[[str], object] = _path_expression(segments).fullmatch
        self.literal: Path = tuple(
            takewhile(lambda segment: "*" not in segment and "?" not in segment, segments)
        )
        self._segments = segments

    def covers(self, text: str) -> bool:
        """Whether the glob fits a path, given as its text, and everything that may lie below it."""
        return self._segments[-1:] == ("**",) and self.matches(text) is not None

    def may_match_below(self, path: Path) -> bool:
        """Whether the glob fits a path, or could fit something below it."""
        segments = self._segments
        places = _behind_any_depth(segments, {0})
        for name in path:
            reached = set()
            for place in places:
                if place == len(segments):
                    continue
                if segments[place] == "**":
                    reached.add(place)
                elif _fits(segments[place], name):
                    reached.add(place + 1)
            places = _behind_any_depth(segments, reached)
        return bool(places)


def _composed(pattern: str) -> str:
    """A pattern in the Unicode form of paths: macOS hands out names in another."""
    return pattern if pattern.isascii() else unicodedata.normalize("NFC", pattern)


def _path_expression(segments: Sequence[str]) -> re.Pattern[str]:
    """Returns a path glob as a pattern over absolute paths; no glob makes it slow.

    The part between two ``**`` is an atomic group: its first match leaves most of the path to the rest.
    """
    if not segments:
        return re.compile("/")
    first, *runs = _split_at_any_depth(segments)
    if not runs:
        return re.compile(first)
    middle = "".join(f"(?>(?:/[^/]++)*?{run}(?=/|\\Z))" for run in runs[:-1] if run)
    pattern = f"{first}{middle}(?:/[^/]++)*{runs[-1]}"
    # Only "**" segments match the root too, whose text is "/".
    if all(segment == "**" for segment in segments):
        pattern = f"/|{pattern}"
    return re.compile(pattern)


def _split_at_any_depth(segments: Sequence[str]) -> list[str]:
    runs = [""]
    for segment in segments:
        if segment == "**":
            runs.append("")
        elif segment.strip("*"):
            runs[-1] += "/" + segment_expression(segment, classes=False)
        else:
            # No segment is empty: the root, whose text is "/", has none for a star to stand for.
            runs[-1] += "/[^/]+"
    return runs


def _fits(segment: str, name: str) -> bool:
    """Whether a segment of a glob, other than ``**``, fits a name."""
    if "*" in segment or "?" in segment:
        return _segment_pattern(segment).fullmatch(name) is not None
    return segment == name


@lru_cache(maxsize=1024)
def _segment_pattern(segment: str) -> re.Pattern[str]:
    return re.compile(segment_expression(segment, classes=False))


def _behind_any_depth(segments: Sequence[str], places: set[int]) -> set[int]:
    """Adds the places in a glob that can be reached from others if ``**`` matches no segment."""
    for place, segment in enumerate(segments):
        if segment == "**" and place in places:
            places.add(place + 1)
    return places


def _split_stars(text: str, classes: bool) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    index = 0
    while index < len(text):
        character = text[index]
        end = _class_end(text, index) if classes and character == "[" else -1
        if character == "*":
            runs.append([])
        elif end > 0:
            runs[-1].append(text[index : end + 1])
            index = end
        else:
            runs[-1].append(character)
        index += 1
    return runs


def _class_end(text: str, start: int) -> int:
    index = start + 1
    if text[index : index + 1] in ("!", "^"):
        index += 1
    return text.find("]", index + 1)


def _atom(atom: str) -> str:
    if atom == "?":
        return "[^/]"
    if len(atom) == 1:
        return re.escape(atom)
    negated = atom[1] in "!^"
    body = atom[2 if negated else 1 : -1]
    items: list[str] = []
    index = 0
    while index < len(body):
        if body[index + 1 : index + 2] == "-" and index + 2 < len(body):
            low, high = body[index], body[index + 2]
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
            index += 3
        else:
            items.append(re.escape(body[index]))
            index += 1
    if not items:
        return "[^/]" if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(items)}]"
