"""Which versions can be read: a collection destroys the trees of the commits before its horizon.

The commits themselves stay, so that the log continues. Parts of a collected version may still be stored; such
a version counts as not available, and nothing of it is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.clock import now_ms
from svc.database.collection.record import read_state
from svc.errors import NotFound, VersionCollected
from svc.hashing import Hash
from svc.objects.store import EMPTY_ROOT

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["Availability"]

_JUST_NOW_MS = 10_000
_REFS = ("refs",)


class Availability:
    """Says which versions of one open database can be read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # The hash of the directory of refs, and the roots that they name: threads see a pair.
        self._named: tuple[Hash | None, frozenset[Hash]] = (None, frozenset())

    def commits(self) -> range:
        """Returns the numbers of the commits whose trees are whole: from the horizon to HEAD."""
        head = self._database.head()
        return range(max(1, self._database.horizon()), head.sequence + 1)

    def has(self, root: Hash) -> bool:
        """Whether the tree of a root to which a commit brought HEAD or a ref is whole; a few microseconds."""
        database = self._database
        if root in (EMPTY_ROOT, database.head().root):
            return True  # Also where the record of the horizon is damaged.
        horizon = database.horizon()
        if not horizon:
            return True
        last = database.last_commit_of(root)
        return (last is not None and last >= horizon) or root in self._ref_roots()

    def has_just_changed(self) -> bool:
        """Whether a collection destroys something now, or did so in the last seconds."""
        state = read_state(self._database.system())
        return state.pending or now_ms() - state.at_ms < _JUST_NOW_MS

    def require(self, root: Hash) -> None:
        """Raises ``VersionCollected`` unless the tree of such a root is whole."""
        if not self.has(root):
            raise VersionCollected(version=root.hex())

    def require_version(self, root: Hash) -> None:
        """Raises ``VersionCollected`` for a version that was collected, ``NotFound`` if there was none."""
        if root == EMPTY_ROOT:
            return
        if self._database.last_commit_of(root) is not None:
            self.require(root)
        elif root not in self._ref_roots():
            raise NotFound("There is no version with this hash.", version=root.hex())

    def _ref_roots(self) -> frozenset[Hash]:
        system = self._database.system()
        entry = system.get(_REFS)
        if entry is None:
            return frozenset()
        seen, roots = self._named
        if seen != entry.hash:
            roots = frozenset(root for _, root in self._database.refs(system=system))
            self._named = entry.hash, roots
        return roots
