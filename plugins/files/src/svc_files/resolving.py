"""Symbolic links: where a path leads to, for reading and for writing.

A version and a path flow in; the path behind all links, and what stands there, flow out. No link leads
into the system namespace, whatever its target says.
"""

from __future__ import annotations

from typing import NamedTuple

from svc.database import Version
from svc.errors import NotFound
from svc.paths import Path, format_path, is_system_path
from svc.tree import Entry, EntryKind

__all__ = ["Place", "find", "follow", "missing"]

_DIRECTORY = EntryKind.DIRECTORY
_SYMLINK = EntryKind.SYMLINK


class Place(NamedTuple):
    """Where a path leads.

    Attributes:
        path: the path without links (its last segment may be one when links are not to be followed).
        entry: what stands there; None when nothing does, and then the path is where it would be made.
    """

    path: Path
    entry: Entry | None


def missing(path: Path) -> NotFound:
    """The one error for what is not there and for what the caller may not know of."""
    return NotFound("There is nothing at this path.", path=format_path(path))


def follow(version: Version, path: Path, *, final: bool = True) -> Place:
    """Returns where a path leads when the links on the way are followed.

    Args:
        version: the state to look into.
        path: any path.
        final: whether a link at the path's own end is followed too.

    Raises:
        NotFound: the path, or a link on the way, leads into the system namespace.
        InvalidInput: more than 32 links, or a cycle of them.
    """
    return Place(*_follow(version, path, final))


def find(version: Version, path: Path, *, final: bool = True) -> tuple[Path, Entry]:
    """As ``follow``, for what must be there.

    Raises:
        NotFound: nothing is there, or a link leads to nothing.
        InvalidInput: more than 32 links, or a cycle of them.
    """
    found, entry = _follow(version, path, final)
    if entry is None:
        raise missing(path)
    return found, entry


def _follow(version: Version, path: Path, final: bool) -> tuple[Path, Entry | None]:
    if is_system_path(path):
        raise missing(path)
    entry = version.get(path)
    if entry is not None:
        if entry.kind is not _SYMLINK or not final:
            return path, entry
    elif len(path) == 1 or _is_directory(version.get(path[:-1])):
        return path, None  # nearly always where a new file comes: no link is on the way
    place = version.follow_parents(path, last=final)
    if place[0] is not path and is_system_path(place[0]):
        raise missing(path)
    return place


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is _DIRECTORY
