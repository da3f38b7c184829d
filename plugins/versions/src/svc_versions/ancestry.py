"""Ancestry: the newest state that two versions have in common, as far as it can be known.

HEAD's states form a line of commits. A restore or a promotion makes HEAD jump to a state of another place,
and what follows descends from that place. A small view keeps the jumps, so finding the newest common ancestor
of two places costs O(jumps), whatever the number of commits.
"""

from __future__ import annotations

import struct

import msgspec

from svc.errors import NotFound
from svc.plugin import EMPTY_ROOT, Commit, Database, EntryKind, Hash, Version, View, ViewReader, ViewStorage
from svc_versions.names import HEAD

__all__ = ["JUMPS_VIEW", "JumpsView", "common_ancestor", "is_ancestor", "root_at"]

JUMPS_VIEW = "versions.jumps"

_KEY = struct.Struct(">Q")


class JumpsView(View):
    """Follows the commit feed and keeps the numbers of the commits at which HEAD was moved to a root."""

    name = JUMPS_VIEW
    format = 1
    takes_collected = True
    """A jump is told by the commit alone."""

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        """Takes one commit in."""
        if before.root == after.root:
            return
        if any(
            change.kind == "ref" and change.path == (HEAD,)
            for transaction in commit.transactions
            for change in transaction.changes
        ):
            storage.put(_KEY.pack(commit.sequence), after.root)


def common_ancestor(database: Database, first: int, second: int) -> int | None:
    """Returns the number of the newest commit of HEAD of which two others come; they may be it themselves.

    0 is the empty database. None when the line of one of them jumped to a state of unknown origin, such as an
    import. The view of jumps catches up first, which may block.
    """
    while first != second:
        lower, upper = min(first, second), max(first, second)
        jump = _last_jump(database, lower, upper)
        if jump is None:
            return lower
        origin = _origin(database, *jump)
        if origin is None:
            return None
        first, second = lower, origin
    return first


def is_ancestor(database: Database, ancestor: int, sequence: int) -> bool:
    """Whether HEAD's state after a commit came of that after another one."""
    return common_ancestor(database, ancestor, sequence) == ancestor


def root_at(database: Database, sequence: int) -> Hash:
    """Returns HEAD's root after a commit; 0 is the empty database."""
    return EMPTY_ROOT if sequence == 0 else database.commit(sequence).root


def _last_jump(database: Database, after: int, up_to: int) -> tuple[int, Hash] | None:
    """The last commit behind one and not behind another that moved HEAD to a root, with that root."""

    def look(storage: ViewStorage) -> tuple[int, Hash] | None:
        found: tuple[int, Hash] | None = None
        for key, root in storage.scan(after=_KEY.pack(after)):
            (sequence,) = _KEY.unpack(key)
            if sequence > up_to:
                break
            found = sequence, root
        return found

    return _reader(database).read(look)


def _reader(database: Database) -> ViewReader:
    try:
        return database.view(JUMPS_VIEW)
    except NotFound:  # A command opened it: nothing has registered the views of plugins.
        return database.register_view(JumpsView())


def _origin(database: Database, sequence: int, root: Hash) -> int | None:
    """The commit whose state HEAD went on from when it jumped to a root."""
    first = database.commit_of(root)
    if first is not None and first < sequence:
        return first
    system = database.system()
    entry = system.get(("versions", "origins", root.hex()))
    if entry is None or entry.kind is not EntryKind.FILE:
        return None
    try:
        noted = msgspec.json.decode(system.read_all(entry), type=int)
    except msgspec.DecodeError:
        return None
    return noted if 0 <= noted < sequence else None
