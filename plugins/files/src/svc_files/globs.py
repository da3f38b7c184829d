"""Path patterns: ``*`` and ``?`` inside a segment, ``[...]`` for one character, ``**`` across segments.

A pattern is compiled once; what comes out takes segments and says yes or no. Every ``*`` becomes an
atomic group, so a match takes time proportional to pattern times name whatever the pattern is: no
pattern of a caller can hold a worker.
"""

from __future__ import annotations

import re

from svc.errors import InvalidInput
from svc.paths import Path

__all__ = ["MAXIMUM_PATTERN", "Glob"]

MAXIMUM_PATTERN = 1024
"""Longest pattern, in characters."""

_ANY_DEPTH = None
_Segment = re.Pattern[str] | None


class Glob:
    """A compiled pattern; immutable, may be shared by threads.

    Args:
        pattern: the pattern as the caller wrote it. A leading slash ties it to the full path.

    Raises:
        InvalidInput: the pattern is empty or longer than ``MAXIMUM_PATTERN``.
    """

    __slots__ = ("_absolute", "_name", "_segments")

    def __init__(self, pattern: str) -> None:
        if not pattern or len(pattern) > MAXIMUM_PATTERN:
            raise InvalidInput(
                f"A glob has 1 to {MAXIMUM_PATTERN} characters.", field="glob", limit=MAXIMUM_PATTERN
            )
        self._absolute = pattern.startswith("/")
        parts = [part for part in pattern.split("/") if part and part != "."]
        segments: list[_Segment] = []
        for part in parts:
            if part != "**":
                segments.append(_compile_segment(part))
            elif not segments or segments[-1] is not _ANY_DEPTH:
                segments.append(_ANY_DEPTH)
        self._segments = tuple(segments)
        only = segments[0] if len(segments) == 1 and not self._absolute else _ANY_DEPTH
        self._name = only

    def matches(self, full: Path, below: int) -> bool:
        """Whether the pattern fits the name, the path below the listed directory, or the full path.

        Args:
            full: the segments of the absolute path.
            below: how many leading segments belong to the listed directory.
        """
        if self._name is not None:
            return self._name.match(full[-1]) is not None if full else False
        if self._absolute:
            return _fits(self._segments, full)
        return _fits(self._segments, full[below:]) or (below > 0 and _fits(self._segments, full))


def _fits(pattern: tuple[_Segment, ...], path: Path) -> bool:
    """Greedy match with one point of return (the last ``**``): the segments' analogue of ``*``."""
    at = star = resume = -1
    at = position = 0
    while position < len(path):
        if at < len(pattern):
            segment = pattern[at]
            if segment is _ANY_DEPTH:
                star, resume = at, position
                at += 1
                continue
            if segment.match(path[position]) is not None:
                at += 1
                position += 1
                continue
        if star < 0:
            return False
        resume += 1
        at, position = star + 1, resume
    return all(segment is _ANY_DEPTH for segment in pattern[at:])


def _compile_segment(text: str) -> re.Pattern[str]:
    pieces = [_piece(piece) for piece in _split_stars(text)]
    if len(pieces) == 1:
        return re.compile(f"(?s:{pieces[0]})\\Z")
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"(?s:{pieces[0]}{middle}.*{pieces[-1]})\\Z")


def _split_stars(text: str) -> list[list[str]]:
    """The pattern as runs of one-character atoms, cut at its stars."""
    runs: list[list[str]] = [[]]
    index = 0
    while index < len(text):
        character = text[index]
        end = _class_end(text, index) if character == "[" else -1
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
    """Index of the bracket that closes a class, or -1 when ``[`` stands for itself."""
    index = start + 1
    if text[index : index + 1] in ("!", "^"):
        index += 1
    return text.find("]", index + 1)


def _piece(atoms: list[str]) -> str:
    return "".join(_atom(atom) for atom in atoms)


def _atom(atom: str) -> str:
    if atom == "?":
        return "."
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
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(items)}]"
