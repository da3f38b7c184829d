"""Whose file is read next: users and directories take turns, and kinds that took too long wait longer.

The queue is in the order of the paths. If it were taken in that order, one user with many files, or with
some that take ten seconds each, would keep the files of all others from being read. So those who wrote files
take turns, as far as it is known who they were; within the files of each the directories do, at each level.
One turn of each round is everybody's together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from itertools import islice

from svc.plugin import Path, ViewStorage
from svc_query.indexing import keys

__all__ = ["ReadingTurns", "SlowKinds"]

_DEEPEST = 4
"""Below so many directories files come in the order of their paths."""
_MOST_CURSORS = 10_000
_MOST_KINDS = 10_000
_MOST_TRIES = 256
_MOST_TRIES_OF_OWNER = 64


class ReadingTurns:
    """Takes keys out of the queue; remembers who came last, and which child of each directory."""

    def __init__(self) -> None:
        self._owner = b""
        self._last: OrderedDict[tuple[bytes, Path], bytes] = OrderedDict()

    def next(
        self, storage: ViewStorage, taken: Collection[bytes], may_take: Callable[[Path], bool]
    ) -> bytes | None:
        """Returns the key of a file that waits, is not ``taken``, and may be; None where none is found."""
        some = islice(storage.scan(keys.WAITING), len(taken) + 1)
        if all(key[len(keys.WAITING) :] in taken for key, _ in some):
            return None
        left = _MOST_TRIES
        first: bytes | None = None
        while left:
            owner = self._owner = _owner_behind(storage, self._owner)
            if owner == first:
                return None
            first = owner if first is None else first
            table = keys.OWNED + owner if owner else keys.WAITING
            for _ in range(min(left, _MOST_TRIES_OF_OWNER)):
                left -= 1
                key = self._next_below(storage, table, ())
                if key is None:
                    break
                if key not in taken and may_take(keys.path_of_key(key)):
                    return key
        return None

    def _next_below(self, storage: ViewStorage, table: bytes, directory: Path) -> bytes | None:
        """The next key below a directory: behind the child that came last, else from the beginning."""
        prefix = table + keys.below_key(directory)
        last = self._last.get((table, directory))
        found = None if last is None else _first(storage, prefix, last)
        if found is None:
            found = _first(storage, prefix, None)
        if found is None:
            return None
        key = found[len(table) :]
        path = keys.path_of_key(key)
        depth = len(directory)
        child = path[: depth + 1]
        is_leaf = len(path) == depth + 1 or depth >= _DEEPEST
        # Behind all that is below a child: what separates segments is the lowest of all characters.
        self._remember(
            (table, directory), found if is_leaf else table + keys.key_of_path(child) + b"\x01\xff"
        )
        return key if is_leaf else self._next_below(storage, table, child)

    def _remember(self, place: tuple[bytes, Path], key: bytes) -> None:
        self._last[place] = key
        self._last.move_to_end(place)
        if len(self._last) > _MOST_CURSORS:
            self._last.popitem(last=False)


def _owner_behind(storage: ViewStorage, owner: bytes) -> bytes:
    """The owner of a waiting file whose turn it is; empty: that of all files."""
    found = _first(storage, keys.OWNED, keys.OWNED + owner + b"\xff" if owner else None)
    return b"" if found is None else found[1 : 1 + keys.OWNER_SIZE]


def _first(storage: ViewStorage, prefix: bytes, after: bytes | None) -> bytes | None:
    return next((key for key, _ in storage.scan(prefix, after)), None)


class SlowKinds:
    """Kinds of files that have run out of time: by owner, directory and parser.

    One of them is read at a time.
    """

    def __init__(self) -> None:
        self._kinds: OrderedDict[tuple[bytes, Path, str], None] = OrderedDict()

    def note(self, owner: bytes, path: Path, label: str) -> None:
        """Notes that a file took longer than it may."""
        kind = owner, path[:-1], label
        self._kinds[kind] = None
        self._kinds.move_to_end(kind)
        if len(self._kinds) > _MOST_KINDS:
            self._kinds.popitem(last=False)

    def forget(self, owner: bytes, path: Path, label: str) -> None:
        """Notes that a file was read in time."""
        self._kinds.pop((owner, path[:-1], label), None)

    def has(self, owner: bytes, path: Path, label: str) -> bool:
        """Whether a file is of such a kind."""
        return (owner, path[:-1], label) in self._kinds
