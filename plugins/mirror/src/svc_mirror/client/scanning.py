"""Looks at both sides, directory by directory, and finds the paths where something is to be done.

A file whose status is as it was noted is not read. What can't be mirrored is named, and left alone with
everything below it, on both sides.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from svc.errors import InvalidPath
from svc.plugin import format_path, is_system_path, parse_path
from svc_mirror.client.deciding import Action, decide
from svc_mirror.client.links import target_here, target_there
from svc_mirror.client.local_tree import OWN, Left, LocalTree, hash_of, seen_of
from svc_mirror.client.state import State
from svc_mirror.client.values import Base, Kind, Remote, Seen

__all__ = ["Found", "Scanner"]

_LEFT = object()


class Found(NamedTuple):
    """A path where something is to be done, and what stands on this machine there."""

    path: str
    actions: list[Action]
    seen: Seen | None


class Scanner:
    """Compares both sides with what is known.

    Args:
        tree: the directory of this machine.
        state: what is known.
        directory: the directory of the database.
        down_only: whether nothing is sent.
        leave: told of a path that is left alone, why, and whether another look may help.
    """

    def __init__(
        self,
        tree: LocalTree,
        state: State,
        directory: str,
        leave: Callable[[str, str, bool], None],
        *,
        down_only: bool,
    ) -> None:
        self._tree = tree
        self._state = state
        self._directory = directory
        self._leave = leave
        self._down_only = down_only
        self.is_empty_here = True

    def run(self) -> Iterator[Found]:
        """Yields what it finds: a directory before what is in it."""
        self._tree.names.clear()
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            try:
                here = self._entries(directory)
            except (Left, OSError) as error:
                self._leave(directory or ".", str(error), True)
                continue
            if here:
                self.is_empty_here = False
            there = self._state.remote_children(directory)
            base = self._state.base_children(directory)
            below = []
            for path in sorted(here.keys() | there.keys() | base.keys()):
                seen = here.get(path)
                if seen is _LEFT or not self._can_be_mirrored(path, there.get(path)):
                    continue
                assert seen is None or isinstance(seen, Seen)
                found = self._compare(path, seen, base.get(path), there.get(path))
                if found is None:
                    continue
                if found.actions:
                    yield found
                sides = (seen, base.get(path), there.get(path))
                if any(side is not None and side.kind is Kind.DIRECTORY for side in sides):
                    below.append(path)
            waiting += reversed(below)

    def _entries(self, directory: str) -> dict[str, object]:
        """What stands in a directory here, by path; ``_LEFT`` for what is left alone."""
        found: dict[str, object] = {}
        for name, status in sorted(self._tree.entries(directory)):
            if not directory and name == OWN:
                continue
            plain = name if name.isascii() else unicodedata.normalize("NFC", name)
            path = f"{directory}/{plain}" if directory else plain
            try:
                whole = parse_path(f"{self._directory}/{path}")
            except InvalidPath:
                self._leave(repr(path), "the database can't take this name", False)
                continue
            if plain != name:
                if path in found or self._stands(directory, plain):
                    self._leave(repr(path), "another name is the same in Unicode form C", False)
                    continue
                self._tree.names[path] = name
            seen = seen_of(status)
            found[path] = seen
            if seen is None or is_system_path(whole):
                self._leave(
                    path, "it is no file, directory or link" if seen is None else "svc keeps this name", False
                )
                found[path] = _LEFT
            elif seen.kind is Kind.LINK:
                found[path] = self._link(path, seen)
        return found

    def _stands(self, directory: str, name: str) -> bool:
        return self._tree.look(f"{directory}/{name}" if directory else name) is not None

    def _link(self, path: str, seen: Seen) -> object:
        try:
            text = self._tree.link_target(path)
        except (Left, OSError):
            return _LEFT
        target = target_there(text, self._tree.actual(path), self._tree.location, self._directory)
        try:
            named = None if target is None else format_path(parse_path(target))
        except InvalidPath:
            named = None
        if named is None:
            self._leave(path, "the link leads out of the directory", False)
            return _LEFT
        return replace(seen, value=named)

    def _can_be_mirrored(self, path: str, there: Remote | None) -> bool:
        if there is None:
            return True
        if not there.is_readable:
            self._leave(path, "you may see it on the server, but not read it", False)
            return False
        if there.kind is Kind.LINK and target_here(there.target, path, self._directory) is None:
            self._leave(path, "the link of the server leads out of the directory", False)
            return False
        if path == OWN:
            self._leave(path, "this name is the mirror's own", False)
            return False
        return True

    def _compare(self, path: str, seen: Seen | None, base: Base | None, there: Remote | None) -> Found | None:
        if seen is not None and seen.kind is Kind.FILE:
            try:
                seen = self._hashed(path, seen, base, there)
            except (Left, OSError) as error:
                self._leave(path, str(error), getattr(error, "again", True))
                return None
        standing = None if seen is None else seen.standing
        known = None if base is None else base.standing
        remote = None if there is None else there.standing
        if base is not None and self._state.is_unseen(path):
            if there is None and standing == known and self._state.is_hidden(path):
                return Found(path, [], seen)
            # It may have gone with an older copy of the database: what is there now is what was there before.
            known = remote
        actions = decide(standing, known, remote, down_only=self._down_only)
        if not actions and seen is not None and base is not None and not base.describes(seen):
            actions = [Action.SETTLE]
        return Found(path, actions, seen)

    def _hashed(self, path: str, seen: Seen, base: Base | None, there: Remote | None) -> Seen:
        if base is not None and base.describes(seen):
            return replace(seen, value=base.value)
        if base is None and there is None:
            return seen  # it is new, whatever it holds
        value, now = hash_of(self._tree, path)
        return replace(now, value=value)
