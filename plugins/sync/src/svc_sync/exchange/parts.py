"""Members that take a part of the tree: what of it they are sent, and what of their own tree stays."""

from __future__ import annotations

from collections.abc import Iterator

from svc.errors import InvalidInput
from svc.plugin import (
    EMPTY_ROOT,
    HASH_SIZE,
    Database,
    Entry,
    EntryKind,
    Hash,
    Path,
    Version,
    format_path,
    parse_path,
    reference_path,
    seal,
    unseal,
)
from svc_sync.exchange.reading import leaf_of
from svc_sync.exchange.records import ACTOR
from svc_sync.scopes import Scope
from svc_sync.tree import FULL
from svc_sync.values import Value

__all__ = [
    "HIDDEN_ROOT",
    "begin_part",
    "follow_rest",
    "leaves_below",
    "open_cursor",
    "seal_cursor",
    "taken_places",
]

HIDDEN_ROOT: Hash = bytes(HASH_SIZE)
"""Stands for the version that a member copies which may not be told its root."""
_PURPOSE = "sync part"
_DELETED_AT_ONCE = 1_000


def leaves_below(version: Version, scope: Scope, after: Path | None) -> Iterator[tuple[Path, Value]]:
    """Yields the leaves at and below the roots of a scope, in order; not all of them are taken."""
    for root in scope.roots:
        begins_within = after is not None and after[: len(root)] == root
        if after is not None and root <= after and not begins_within:
            continue
        entry = version.get(root)
        if entry is None:
            continue
        leaf = leaf_of(entry)
        if root and not begins_within and leaf is not FULL:
            yield root, leaf
        if entry.kind is EntryKind.DIRECTORY:
            for path, below in version.walk(root, after=after if begins_within else None):
                leaf = leaf_of(below)
                if leaf is not FULL:
                    yield path, leaf


def seal_cursor(database: Database, path: Path) -> str:
    """Returns a text by which a member goes on behind a path that it may not know."""
    return seal(database.database_id, format_path(path).encode(), _PURPOSE).hex()


def open_cursor(database: Database, text: str | None) -> Path | None:
    """Returns the path of such a text.

    Raises:
        InvalidInput: it is none.
    """
    if text is None:
        return None
    try:
        opened = unseal(database.database_id, bytes.fromhex(text), _PURPOSE)
    except ValueError:
        opened = None
    if opened is None:
        raise InvalidInput("This is no place to go on from.", field="after")
    return parse_path(opened.decode())


def taken_places(version: Version, scope: Scope) -> Iterator[Path]:
    """Yields the topmost paths of a tree that a scope takes as they are, with all that is below them."""
    pending: list[tuple[Path, Entry | None]] = [((), version.get(()))]
    while pending:
        path, entry = pending.pop()
        is_directory = entry is not None and entry.kind is EntryKind.DIRECTORY
        if path and (scope.takes_all_of(path) or (not is_directory and scope.takes(path))):
            yield path
        elif is_directory and scope.may_take_of(path):
            pending += [((*path, name), child) for name, child in version.entries(path)]


def begin_part(database: Database, ref: str, scope: Scope, root: Hash) -> None:
    """Makes a ref a tree without what a scope takes of it; of a whole scope, the tree itself. Commits."""
    with database.transaction(actor=ACTOR, message="begin to copy a part") as changes:
        changes.set_ref(ref, root)
    gone = [] if scope.is_whole else list(taken_places(database.version_of(root), scope))
    for first in range(0, len(gone), _DELETED_AT_ONCE):
        with database.transaction(
            actor=ACTOR, message="begin to copy a part", ref=ref, checks_contents=False
        ) as changes:
            for path in gone[first : first + _DELETED_AT_ONCE]:
                changes.delete(path, recursive=True)


def follow_rest(database: Database, ref: str, scope: Scope, before: Hash, now: Hash) -> None:
    """Brings to a ref what was changed in this node's tree outside of a scope; commits."""
    old = database.version_of(before)
    gone: list[Path] = []
    put: list[tuple[Path, Entry]] = []
    for change in old.diff(database.version_of(now)):
        if scope.takes(change.path):
            continue
        if leaf_of(change.before) is not None and leaf_of(change.before) is not FULL:
            gone.append(change.path)
        if change.after is not None and leaf_of(change.after) is not FULL:
            put.append((change.path, change.after))
    if not gone and not put:
        return
    entry = database.system().get(reference_path(ref))
    copied = database.version_of(EMPTY_ROOT if entry is None else entry.hash)
    with database.transaction(
        actor=ACTOR, message="follow the rest", ref=ref, checks_contents=False
    ) as changes:
        for path in reversed(gone):
            # It is gone already where this is done again.
            if copied.get(path) is not None:
                changes.delete(path)
        for path, entry in put:
            changes.put_entry(path, entry)
