"""Where a link may lead."""

from __future__ import annotations

from collections.abc import Mapping

from svc.errors import InvalidInput
from svc.plugin import Path
from svc_files.requests import Writing

__all__ = ["refuse_circle"]

MAXIMUM_HOPS = 32
_NOTHING_MADE: Mapping[Path, Path | None] = {}


def refuse_circle(
    writing: Writing, path: Path, target: Path, made: Mapping[Path, Path | None] = _NOTHING_MADE
) -> None:
    """Refuses, with InvalidInput, a link that would lead back to itself, or through more than 32 links.

    Only links that the caller may see count: the answer must not tell where others lead. ``made`` are the
    links that the same commit makes before, with where they lead; None of what it removes.
    """
    shows = writing.reading.shows
    links = 0

    def may_pass(link: Path) -> bool:
        nonlocal links
        if link in made or link[: len(path)] == path or not shows(link):
            return False
        links += 1
        return links < MAXIMUM_HOPS

    end = target
    while True:
        end, _ = writing.version.follow_parents(end, may_pass=may_pass)
        if end[: len(path)] == path:
            raise InvalidInput("The link would lead in a circle.", field="target")
        further = _next_made(end, made)
        if further is not None:
            links += 1
            end = further
        if links >= MAXIMUM_HOPS:
            raise InvalidInput(f"The link would lead through more than {MAXIMUM_HOPS} links.", field="target")
        if further is None:
            return


def _next_made(path: Path, made: Mapping[Path, Path | None]) -> Path | None:
    for length in range(1, len(path) + 1 if made else 0):
        target = made.get(path[:length])
        if target is not None:
            return target + path[length:]
    return None
