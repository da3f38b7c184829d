"""Symbolic links: what one names here, as a path of the database, and the reverse.

A link is kept as a link, and only where it names something of the directory that is mirrored: none leads out.
"""

from __future__ import annotations

import posixpath

__all__ = ["target_here", "target_there"]


def target_there(text: str, path: str, location: str, directory: str) -> str | None:
    """Returns the path of the database that a link of this machine names; None where it leads out.

    Args:
        text: what the link says.
        path: where it is, relative to the directory that is mirrored.
        location: that directory, absolute.
        directory: the directory of the database, ``/`` or with a slash before each name.
    """
    if text.startswith("/"):
        inside = posixpath.relpath(posixpath.normpath(text), location)
    else:
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    if inside == ".." or inside.startswith("../"):
        return None
    return posixpath.normpath(posixpath.join(directory, inside))


def target_here(target: str, path: str, directory: str) -> str | None:
    """Returns what a link of this machine says that names a path of the database; None where it leads out."""
    inside = posixpath.relpath(target, directory)
    if inside == ".." or inside.startswith("../"):
        return None
    return posixpath.relpath(inside, posixpath.dirname(path) or ".")
