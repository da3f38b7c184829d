"""What repairs could not restore, and nobody stored again: a list in the system tree and in every copy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

import msgspec

from svc.database.version import Version
from svc.errors import SvcError
from svc.hashing import HASH_SIZE, Hash
from svc.objects.store import ObjectStore
from svc.paths import Path

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["LOST", "REPAIRS", "REPORTS", "Lost", "lost_message"]

REPAIRS = "repairs"
"""Directory of the system tree that belongs to repairs."""

LOST = (REPAIRS, "lost")
REPORTS = (REPAIRS, "reports")


class _Stored(msgspec.Struct):
    commits: list[int]
    objects: bytes
    given_up: list[str] = []
    needed: list[str] = []


class Lost:
    """Objects and commits that a repair could not save, and system directories that it had to remove.

    ``needed`` are the first paths at which HEAD or a named version needed something of it, when that was last
    looked for.
    """

    def __init__(
        self,
        objects: Iterable[Hash] = (),
        commits: Iterable[int] = (),
        given_up: Iterable[Path] = (),
        needed: Iterable[str] = (),
    ) -> None:
        self.given_up = tuple(given_up)
        self.needed = tuple(needed)
        self._objects = b"".join(sorted(set(objects)))
        self.commits = frozenset(commits)

    def __contains__(self, hash: Hash) -> bool:
        count = len(self)
        at = bisect_left(range(count), hash, key=self._at)
        return at < count and self._at(at) == hash

    def __len__(self) -> int:
        return len(self._objects) // HASH_SIZE

    def _at(self, number: int) -> Hash:
        return self._objects[number * HASH_SIZE : (number + 1) * HASH_SIZE]

    def objects(self) -> set[Hash]:
        """Returns the identities of the objects."""
        return {self._at(number) for number in range(len(self))}

    def encode(self) -> bytes:
        """Returns what is stored of it."""
        given_up = ["/".join(path) for path in self.given_up]
        stored = _Stored(sorted(self.commits), self._objects, given_up, list(self.needed))
        return msgspec.msgpack.encode(stored)

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Returns the list of what ``encode`` returned; an empty one of what nobody can read."""
        made = cls()
        try:
            stored = msgspec.msgpack.decode(payload, type=_Stored)
        except msgspec.MsgspecError:
            return made
        made._objects, made.commits = stored.objects, frozenset(stored.commits)
        made.given_up = tuple(tuple(path.split("/")) for path in stored.given_up)
        made.needed = tuple(stored.needed)
        return made

    @classmethod
    def of(cls, database: Database) -> Self:
        """Returns what was lost of a database, as its system tree says; nothing where that can't be read."""
        try:
            # A store of its own: one that is missing itself is not to be explained by itself.
            objects = ObjectStore(database.objects.log, database.objects.index)
            system = Version(objects, database.head().system_root)
            entry = system.get(LOST)
            return cls() if entry is None else cls.decode(system.read_all(entry))
        except SvcError:
            return cls()


def lost_message(database: Database, hash: Hash) -> str | None:
    """Returns what to say of an object that is missing because it was lost; None when it was not."""
    if hash not in Lost.of(database):
        return None
    return (
        "This was lost: its bytes were damaged, and the repair of the database found no whole copy of them. "
        "It can be read again as soon as the same content is stored again."
    )
