"""Which lines of a text differ between two versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from svc.errors import InvalidInput
from svc.plugin import (
    Entry,
    EntryKind,
    Path,
    Version,
    format_path,
    matching_blocks,
    path_not_found,
    run_blocking,
)
from svc_history.answers import viewer_of
from svc_history.blaming import lines_of
from svc_history.comparing import side_json
from svc_history.models import ChangeSide, TextComparison, TextLine, TextQuery
from svc_history.viewer import Viewer

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["AROUND", "MOST_LINES", "text_comparison"]

MOST_LINES = 2_000
AROUND = 3
"""Lines before and after those that differ."""
_EFFORT = 500_000


def text_comparison(call: Call, path: Path, query: TextQuery) -> TextComparison:
    """Returns how the text at a path differs between two versions.

    Raises NotFound where neither has anything at the path that the caller may see.
    """
    if not query.source:
        raise InvalidInput("The parameter from names a version.", field="from")
    viewer = viewer_of(call)
    viewer.authorize(path)
    database = call.database
    roots = database.named_version(query.source), database.named_version(query.to or "HEAD")
    with database.hold_version(*roots):
        sides = [_side_of(viewer, database.version_of(root), path) for root in roots]
        if not any(entry for _, entry in sides):
            raise path_not_found(path)
        found = run_blocking(_lines_of_sides, sides, call.configuration.compare_size)
    before, after = (msgspec.convert(side_json(viewer, path, entry), ChangeSide | None) for _, entry in sides)
    return TextComparison(
        path=format_path(path),
        source=roots[0].hex(),
        to=roots[1].hex(),
        before=before,
        after=after,
        lines=UNSET if found is None else found[:MOST_LINES],
        truncated=found is not None and len(found) > MOST_LINES,
    )


def _side_of(viewer: Viewer, version: Version, path: Path) -> tuple[Version, Entry | None]:
    entry = version.get(path) if path else None
    is_directory = entry is not None and entry.kind is EntryKind.DIRECTORY
    return version, entry if viewer.shows(path, directory=is_directory) else None


def _lines_of_sides(sides: list[tuple[Version, Entry | None]], most: int) -> list[TextLine] | None:
    texts: list[list[bytes]] = []
    for version, entry in sides:
        lines = [] if entry is None else lines_of(version, entry, most)
        if lines is None:
            return None
        texts.append(lines)
    before, after = texts
    blocks = matching_blocks(before, after, effort=_EFFORT)
    found: list[TextLine] = []
    for line in _differences(before, after, blocks):
        found.append(line)
        if len(found) > MOST_LINES:
            break
    return found


def _differences(
    before: list[bytes], after: list[bytes], blocks: Iterable[tuple[int, int, int]]
) -> Iterator[TextLine]:
    """The lines that only one side has, and those around them."""
    i = j = 0
    for start, start_after, length in (*blocks, (len(before), len(after), 0)):
        for number in range(i, start):
            yield TextLine(number + 1, None, _text(before[number]))
        for number in range(j, start_after):
            yield TextLine(None, number + 1, _text(after[number]))
        is_first = start == start_after == 0
        i, j = start + length, start_after + length
        near = set() if is_first else set(range(min(AROUND, length)))
        if i < len(before) or j < len(after):
            near |= set(range(max(0, length - AROUND), length))
        for offset in sorted(near):
            yield TextLine(start + offset + 1, start_after + offset + 1, _text(before[start + offset]))


def _text(line: bytes) -> str:
    return line.decode("utf-8").rstrip("\r\n")
