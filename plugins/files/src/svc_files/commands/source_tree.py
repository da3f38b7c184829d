"""Reads a directory of this machine as what a database can hold of it.

Names, files, links and subdirectories get their paths in the database; what cannot be stored is given too,
with the reason.
"""

from __future__ import annotations

import errno
import os
from typing import Protocol

from msgspec import Struct, field

from svc.errors import InvalidPath
from svc.plugin import MAXIMUM_PATH_BYTES, Path, format_path, is_system_path, parse_path
from svc_files.client import SourceFile
from svc_files.commands.exclusion import NOTHING, Exclusion

__all__ = ["OwnFiles", "Problem", "SourceDirectory", "SourceLink", "SourceTree", "count_files"]


class Problem(Struct, frozen=True):
    """Something on the disk that is not stored, and why, in words for a person.

    It is ``harmless`` where no database could hold it (a socket): to leave it out is no failure.
    """

    location: str
    reason: str
    harmless: bool = False


class SourceLink(Struct, frozen=True):
    """A symbolic link on the disk whose target lies in the tree: ``target`` is its path in the database."""

    path: Path
    location: str
    target: str
    mtime_ns: int


class SourceDirectory(Struct):
    """One directory of the tree, read; everything in it by name.

    Attributes:
        links: its symbolic links that can be stored.
        directories: its subdirectories: (path in the database, path on this machine).
        names: every valid name that it holds, stored or not; nothing under them is to be removed.
        problems: what cannot be stored.
        complete: whether the directory could be read to its end.
    """

    path: Path
    location: str
    mtime_ns: int = 0
    files: list[SourceFile] = field(default_factory=list)
    links: list[SourceLink] = field(default_factory=list)
    directories: list[tuple[Path, str]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    complete: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether the directory holds nothing that is stored."""
        return not (self.files or self.links or self.directories)


class OwnFiles(Protocol):
    """Knows which files of this machine are the database itself."""

    def is_own_file(self, device: int, inode: int) -> bool:
        """Whether a file belongs to the database that is written to."""


class SourceTree:
    """A directory tree on the disk, as it is to appear in a database."""

    def __init__(self, root: str, base: Path, own: OwnFiles, excluded: Exclusion = NOTHING) -> None:
        self.root = os.path.realpath(root)
        self.base = base
        self._own = own
        self._excluded = excluded

    def excludes(self, path: Path) -> bool:
        """Whether what has a path in the database is left out."""
        return self._excluded.fits(path[len(self.base) :])

    def read(self, path: Path, location: str) -> SourceDirectory:
        """Reads one directory; what cannot be stored or read is in its ``problems``."""
        found = SourceDirectory(path, location)
        try:
            found.mtime_ns = os.stat(location, follow_symlinks=False).st_mtime_ns
            with os.scandir(location) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    self._take(entry, found)
        except OSError as error:
            found.complete = False
            found.problems.append(Problem(location, _reason(error)))
        return found

    def _take(self, entry: os.DirEntry[str], found: SourceDirectory) -> None:
        try:
            name = _segment(entry.name, found.path)
        except InvalidPath as error:
            found.problems.append(Problem(entry.path, error.message))
            return
        if name in found.names:
            found.problems.append(Problem(entry.path, "another name here is the same in Unicode form C"))
            return
        found.names.add(name)
        if self.excludes((*found.path, name)):
            return
        try:
            self._classify(entry, (*found.path, name), found)
        except OSError as error:
            found.problems.append(Problem(entry.path, _reason(error)))

    def _classify(self, entry: os.DirEntry[str], path: Path, found: SourceDirectory) -> None:
        if is_system_path(path):
            found.problems.append(Problem(entry.path, "its name is kept for the database itself"))
        elif entry.is_symlink():
            self._take_link(entry, path, found)
        elif entry.is_dir(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            if self._own.is_own_file(status.st_dev, status.st_ino):
                found.problems.append(Problem(entry.path, "it belongs to the database itself", harmless=True))
            else:
                found.directories.append((path, entry.path))
        elif entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            if self._own.is_own_file(status.st_dev, status.st_ino):
                found.problems.append(Problem(entry.path, "it is the database itself", harmless=True))
            else:
                found.files.append(SourceFile(path, entry.path, status.st_size, status.st_mtime_ns))
        else:
            found.problems.append(Problem(entry.path, "it is a socket, FIFO or device", harmless=True))

    def _take_link(self, entry: os.DirEntry[str], path: Path, found: SourceDirectory) -> None:
        target = os.readlink(entry.path)
        try:
            inside = self._inside(target, os.path.dirname(entry.path))
        except InvalidPath as error:
            found.problems.append(Problem(entry.path, f"the target of the link: {error.message}"))
            return
        if inside is None:
            found.problems.append(Problem(entry.path, "the link leads out of the tree"))
            return
        if _leads_in_a_circle(entry.path):
            found.problems.append(Problem(entry.path, "the link leads in a circle"))
            return
        status = entry.stat(follow_symlinks=False)
        found.links.append(SourceLink(path, entry.path, format_path(inside), status.st_mtime_ns))

    def _inside(self, target: str, directory: str) -> Path | None:
        """The database path of a link's target; None when it lies outside the tree.

        ``..`` behind a link to a directory leads to that directory's parent, as the system takes it, not
        back.
        """
        parts = [part for part in target.split("/") if part not in ("", ".")]
        here = "/" if target.startswith("/") else directory
        for part in parts:
            here = os.path.dirname(os.path.realpath(here)) if part == ".." else os.path.join(here, part)
        if here == self.root:
            return self.base
        if not here.startswith(self.root.rstrip("/") + "/"):
            # An absolute target may reach the tree through a link above it.
            parent, name = os.path.split(here)
            here = os.path.join(os.path.realpath(parent), name)
            if not here.startswith(self.root.rstrip("/") + "/"):
                return None
        below = here[len(self.root.rstrip("/")) + 1 :]
        inside = (*self.base, *parse_path(below))
        return None if is_system_path(inside) else inside


def _leads_in_a_circle(link: str) -> bool:
    """Whether following a link never ends. No server would take it, nor what is sent along with it."""
    try:
        os.stat(link)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def count_files(root: str) -> int:
    """Returns the number of files and links below a directory, as far as it can be read."""
    count = 0
    waiting = [root]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        count += 1
        except OSError:
            continue
    return count


def _segment(name: str, parent: Path) -> str:
    """The segment that a name on the disk becomes.

    Raises InvalidPath for one that is not UTF-8, holds control characters or is too long, alone or as a path.
    """
    length = sum(map(len, parent)) + len(parent) + len(name)
    if name.isascii() and name.isprintable() and len(name) < 256 and length * 4 < MAXIMUM_PATH_BYTES:
        return name
    return parse_path(format_path((*parent, name)))[-1]


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it vanished while the tree was read"
    return (error.strerror or str(error)).lower()
