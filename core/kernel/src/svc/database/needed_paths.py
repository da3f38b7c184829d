"""Whether HEAD or a named version still needs what a repair could not save.

A repair or a verification walks all versions and notes where something lost is needed. Here only these paths
are looked at, so that it costs little to tell when the last of them was stored again or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from svc.database.lost import LOST, Lost
from svc.database.references import HEAD_NAME, references
from svc.errors import CorruptRecord, SvcError
from svc.hashing import Hash
from svc.paths import Path, parse_path
from svc.tree import EntryKind

if TYPE_CHECKING:
    from svc.database.database import Database
    from svc.database.version import Version

__all__ = ["NeededPaths", "note_needed"]

_MOST_NOTED = 100
_MOST_LOOKS = 200


def note_needed(database: Database, paths: Iterable[str]) -> None:
    """Writes down by which paths something lost is needed; a commit where that changed."""
    lost = Lost.of(database)
    needed = tuple(dict.fromkeys(paths))[:_MOST_NOTED]
    if needed != lost.needed:
        lost.needed = needed
        with database.transaction(message="verify") as transaction:
            transaction.put_system(LOST, lost.encode())


class NeededPaths:
    """Looks at noted paths in HEAD and all named versions; what was looked at is remembered.

    Of very many versions some are looked at in each call; meanwhile the answer is the one before.
    """

    def __init__(self) -> None:
        self._list: Hash | None = None
        self._paths: tuple[str, ...] = ()
        self._free: set[Hash] = set()
        self._at: tuple[Hash, Hash] | None = None
        self._found: str | None = None

    def first(self, database: Database) -> str | None:
        """Returns one path that leads to something lost, and the version, as words; None where none does."""
        head = database.head()
        at = head.root, head.system_root
        if at == self._at and self._found is None:
            return None
        try:
            system = database.system()
            entry = system.get(LOST)
            if (None if entry is None else entry.hash) != self._list:
                self._list = None if entry is None else entry.hash
                self._paths, self._free = Lost.of(database).needed, set()
                self._found = self._paths[0] if self._paths else None
            if self._paths:
                self._look(database)
            self._at = at
        except SvcError:
            pass  # what can't be read here has a finding of its own
        return self._found

    def _look(self, database: Database) -> None:
        looks = 0
        seen: set[Hash] = set()
        for name, version in _versions(database):
            if version.root not in self._free:
                for path in self._paths:
                    looks += 1
                    if _leads_to_loss(database, version, parse_path(path)):
                        self._found = f"{path} in {name}"
                        return
                self._free.add(version.root)
                if looks >= _MOST_LOOKS:
                    return
            seen.add(version.root)
        self._free = seen
        self._found = None


def _versions(database: Database) -> Iterator[tuple[str, Version]]:
    for name, root in chain([(HEAD_NAME, database.head().root)], references(database.system())):
        yield name, database.version_of(root)


def _leads_to_loss(database: Database, version: Version, path: Path) -> bool:
    find = database.objects.index.find
    try:
        entry = version.get(path)
        if entry is None:
            return False
        if entry.kind is EntryKind.DIRECTORY:
            for _ in version.entries(path):
                pass
            return False
        return not all(find(hash) is not None for hash, _ in version.chunks(entry))
    except CorruptRecord:
        return True
    except SvcError:
        return False
