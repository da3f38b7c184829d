"""Symbolic links: where a path leads to, for reading and for writing.

No link leads into the system namespace, whatever its target says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from svc.errors import NotFound
from svc.plugin import Entry, EntryKind, Path, Version, format_path, is_system_path

__all__ = ["Place", "find", "follow", "missing"]

_DIRECTORY = EntryKind.DIRECTORY
_SYMLINK = EntryKind.SYMLINK


class Place(NamedTuple):
    """Where a path leads: its last segment may be a link when links are not to be followed.

    ``entry`` is what stands there; None when nothing does, and then the path is where it would be made.
    """

    path: Path
    entry: Entry | None


def missing(path: Path) -> NotFound:
    """The one error for what is not there and for what the caller may not know of."""
    return NotFound("There is nothing at this path.", path=format_path(path))


def follow(
    version: Version, path: Path, *, final: bool = True, may_pass: Callable[[Path], bool] | None = None
) -> Place:
    """Returns where a path leads when the links on the way, and with ``final`` at its end, are followed.

    ``may_pass`` says whether the caller may see the link at a path; to one who may not, it leads to nothing.

    Raises NotFound where it leads into the system namespace, and InvalidInput for more than 32 links, or a
    cycle.
    """
    if is_system_path(path):
        raise missing(path)
    entry = version.get(path)
    if entry is not None:
        if entry.kind is not _SYMLINK or not final:
            return Place(path, entry)
    elif len(path) == 1 or _is_directory(version.get(path[:-1])):
        return Place(path, None)  # nearly always where a new file comes: no link is on the way
    found, entry = version.follow_parents(path, last=final, may_pass=may_pass)
    if found is not path and is_system_path(found):
        raise missing(path)
    return Place(found, entry)


def find(version: Version, path: Path, *, final: bool = True) -> tuple[Path, Entry]:
    """As ``follow``, for what must be there: raises NotFound also where a link leads to nothing."""
    found, entry = follow(version, path, final=final)
    if entry is None:
        raise missing(path)
    return found, entry


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is _DIRECTORY
