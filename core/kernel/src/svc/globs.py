"""Glob patterns of one path segment, as regular expressions that no pattern can make slow.

``*`` stands for any characters and ``?`` for one. What is between two stars is an atomic group: the first
place where it fits leaves most to what follows, so no other place need be tried. A match takes time
proportional to pattern times text.
"""

from __future__ import annotations

import re

__all__ = ["segment_expression"]


def segment_expression(pattern: str, *, classes: bool) -> str:
    """Returns a regular expression for a segment of a path; the caller anchors it at both ends.

    Args:
        pattern: the segment's pattern, without a slash.
        classes: whether ``[...]`` stands for one of the characters in it; else a bracket is a character.
    """
    runs = ["".join(map(_atom, run)) for run in _split_stars(pattern, classes)]
    if len(runs) == 1:
        return runs[0]
    middle = "".join(f"(?>[^/]*?{run})" for run in runs[1:-1] if run)
    return f"{runs[0]}{middle}[^/]*{runs[-1]}"


def _split_stars(text: str, classes: bool) -> list[list[str]]:
    """The pattern as runs of one-character atoms, cut at its stars."""
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
    """Index of the bracket that closes a class, or -1 when ``[`` stands for itself."""
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
