"""Who else could change a file: everything that its path leads through counts, as for the keys of sshd.

Whoever may write a directory may put another file in the place of ours, and whoever owns it may let others
write it. So each directory, each link and the file itself must belong to root or to the user of this process,
and must not be writable by everybody. A sticky directory such as ``/tmp`` may be: there only the owner of a
file can replace it. Groups are left to whoever made them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from svc_auth_file.format import BadFile

__all__ = ["require_trusted", "steps_of"]

_MOST_LINKS = 40


def steps_of(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yields the directories and links that a path leads through, from ``/`` on, and what it leads to.

    Raises:
        OSError: it leads nowhere, or can't be followed.
    """
    at, links = "/", 0
    yield at, os.lstat(at)
    names = os.path.join(os.getcwd(), path).split("/")[::-1]
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, name)
        found = os.lstat(here)
        yield here, found
        if not stat.S_ISLNK(found.st_mode):
            at = here
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(here)
        at = "/" if target.startswith("/") else at
        names += target.split("/")[::-1]


def require_trusted(found: os.stat_result, place: str | None = None) -> None:
    """Raises BadFile where others could change what was found.

    Args:
        found: what ``lstat`` or ``fstat`` says of it.
        place: the path of a directory or link on the way; None for the file itself.
    """
    kind = "link" if stat.S_ISLNK(found.st_mode) else "directory"
    if found.st_uid not in (0, os.geteuid()):
        owner = "Its owner" if place is None else f"The owner of the {kind} {place}"
        raise BadFile(f"{owner} is neither root nor the user of this process, but uid {found.st_uid}.")
    if stat.S_ISLNK(found.st_mode) or not found.st_mode & stat.S_IWOTH:
        return
    if place is None:
        raise BadFile("Everybody on this machine may write it: 'chmod o-w' takes that away.")
    if not found.st_mode & stat.S_ISVTX:
        raise BadFile(
            f"Everybody on this machine may write the directory {place}, and so put another file in its "
            "place: 'chmod o-w' takes that away."
        )
