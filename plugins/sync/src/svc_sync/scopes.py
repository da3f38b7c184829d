"""Which paths a member takes: all of them, or those that its globs hold."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from svc.errors import InvalidInput, SvcError
from svc.plugin import Path, PathGlob, format_path, is_system_path, parse_path

__all__ = [
    "REFERENCES",
    "SYSTEM",
    "Scope",
    "check_globs",
    "is_of_user",
    "parse_register_path",
    "register_path_text",
]

MOST_GLOBS = 100
MOST_WILDCARDS = 200
"""Of all globs of a member together: each path of a tree is compared with all of them."""

SYSTEM: Path = ("", "system")
"""Registers of documents of the system tree lie below it; no path of a user begins with an empty name."""

REFERENCES: Path = ("", "refs")
"""Registers of snapshots and forks lie below it: ``("", "refs", "forks", name)``."""


def is_of_user(path: Path) -> bool:
    """Whether a register's path is one of the user tree."""
    return path[:1] != ("",)


def register_path_text(path: Path) -> str:
    """Returns the text of a register's path; two slashes begin those that are not of the user tree."""
    return format_path(path) if is_of_user(path) else "/" + format_path(path[1:])


def parse_register_path(text: str) -> Path:
    """Returns the path of a register from its text; raises as ``parse_path``."""
    return ("", *parse_path(text[1:])) if text.startswith("//") else parse_path(text)


class Scope:
    """The paths that a member takes.

    Args:
        globs: texts of globs over whole paths, as in ``sync_paths``; None takes everything, and with it the
            system's data, snapshots and forks.

    What lies outside a member's scope stays as it is there, and is not exchanged.
    """

    __slots__ = ("_globs", "_matches", "globs")

    def __init__(self, globs: Iterable[str] | None = None) -> None:
        self.globs = None if globs is None else tuple(globs)
        self._globs = [_glob(text) for text in self.globs or ()]
        self._matches = [glob.matches for glob in self._globs]

    @property
    def is_whole(self) -> bool:
        """Whether everything is taken."""
        return self.globs is None

    def takes(self, path: Path) -> bool:
        """Whether the register of a path belongs to the member."""
        if self.globs is None:
            return True
        if not is_of_user(path):
            return False
        text = format_path(path)
        return any(matches(text) for matches in self._matches)

    def takes_all_of(self, path: Path) -> bool:
        """Whether a path of the user tree is taken, and everything that may lie below it."""
        return self.globs is None or any(glob.covers(format_path(path)) for glob in self._globs)

    def may_take_of(self, path: Path) -> bool:
        """Whether a path of the user tree is taken, or something below it could be."""
        return self.globs is None or any(glob.may_match_below(path) for glob in self._globs)

    @property
    def roots(self) -> list[Path]:
        """The paths at or below which all lies that is taken of the user tree, in order."""
        literals = [()] if self.globs is None else sorted({glob.literal for glob in self._globs})
        return [path for path in literals if not any(path[:depth] in literals for depth in range(len(path)))]

    def holds(self, other: Scope) -> bool:
        """Whether all that another scope takes is known to be taken by this one too."""
        if self.globs is None or other.globs is None:
            return self.globs is None
        return set(other.globs) <= set(self.globs)


def check_globs(texts: Iterable[str] | None) -> tuple[str, ...] | None:
    """Returns globs in the one form in which members are told of them; None: everything.

    Raises:
        InvalidInput: there are none, or too many of them or of wildcards; or one fits no path of files.
    """
    if texts is None:
        return None
    found = set()
    for text in texts:
        try:
            path = parse_path(text)
        except SvcError as error:
            raise InvalidInput(f"This is no glob over paths: {error}", field="sync_paths") from error
        if not text.startswith("/") or not path or is_system_path(path):
            raise InvalidInput(
                "A glob over paths begins with a slash and names files, such as /docs/**.", field="sync_paths"
            )
        found.add(format_path(path))
    if not 0 < len(found) <= MOST_GLOBS:
        raise InvalidInput(f"A node takes 1 to {MOST_GLOBS} globs, or everything.", field="sync_paths")
    if sum(text.count("*") + text.count("?") for text in found) > MOST_WILDCARDS:
        raise InvalidInput(
            f"The globs may have at most {MOST_WILDCARDS} wildcards together.",
            field="sync_paths",
            limit=MOST_WILDCARDS,
        )
    return tuple(sorted(found))


@lru_cache(maxsize=1_024)
def _glob(text: str) -> PathGlob:
    return PathGlob(parse_path(text))
