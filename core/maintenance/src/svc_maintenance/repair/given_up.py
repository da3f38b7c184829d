"""Gives up directories of the system tree with a lost node, since every access to them fails.

Names of versions protect these from collections, so those that an earlier commit had are restored. Nothing
else older is restored, since a key may have been revoked meanwhile. A later repair that finds the missing
node restores the directory from the commits that have it, unless something new stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from svc.database.committer import CommitRequest
from svc.database.database import Database
from svc.database.operations import Delete, Operation, PutEntry
from svc.database.references import HEAD_NAME, REFERENCES
from svc.database.version import Version
from svc.errors import CorruptRecord, SvcError
from svc.hashing import Hash
from svc.objects.store import EMPTY_ROOT, PendingObjects
from svc.paths import Path
from svc.tree import Entry, EntryKind

__all__ = ["give_up_directories"]

_MESSAGE = "repair"


def give_up_directories(
    database: Database, before: Iterable[Path], system_roots: Iterable[Hash]
) -> list[Path]:
    """Brings system directories back, removes unreadable ones, and returns all that are given up now."""
    roots = list(system_roots)
    absent = [path for path in before if database.system().get(path) is None]
    found = {path: entry for path in absent if (entry := _latest_whole(database, path, roots)) is not None}
    _commit(database, [PutEntry(path, entry, system=True) for path, entry in found.items()])
    lost = list(_unreadable(database.system(), ()))
    _commit(database, [Delete(path, recursive=True, system=True) for path in lost])
    _commit(database, [one for path in lost for one in _names_again(database, path, roots)])
    return [*(path for path in absent if path not in found), *lost]


def _latest_whole(database: Database, path: Path, roots: list[Hash]) -> Entry | None:
    for root in reversed(roots):
        try:
            version = database.version_of(root)
            entry = version.get(path)
            if entry is None:
                continue
            return None if entry.kind is EntryKind.DIRECTORY and any(_unreadable(version, path)) else entry
        except SvcError:
            continue
    return None


def _unreadable(system: Version, path: Path) -> Iterator[Path]:
    """Yields directories at and below a path with an unreadable node; not of user trees that refs name."""
    if len(path) == 3 and path[0] == REFERENCES:
        return
    try:
        below = [name for name, entry in system.entries(path) if entry.kind is EntryKind.DIRECTORY]
    except CorruptRecord:
        yield path
        return
    for name in below:
        yield from _unreadable(system, (*path, name))


def _names_again(database: Database, path: Path, roots: list[Hash]) -> list[PutEntry]:
    if path[0] != REFERENCES:
        return []
    find = database.objects.index.find
    for root in reversed(roots):
        try:
            named = list(database.version_of(root).walk(path, max_depth=2 - len(path)))
        except SvcError:
            continue
        return [
            PutEntry(one, entry, system=True)
            for one, entry in named
            if len(one) == 3 and (entry.hash == EMPTY_ROOT or find(entry.hash) is not None)
        ]
    return []


def _commit(database: Database, operations: Sequence[Operation]) -> None:
    if operations:
        database.submit(CommitRequest(HEAD_NAME, [*operations], PendingObjects(), message=_MESSAGE))
