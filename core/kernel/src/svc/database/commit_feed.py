"""The commits of a database in order, read from the log and decoded once for all views that follow them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from svc.database.commit import Commit
from svc.database.state import SharedState
from svc.hashing import Hash

__all__ = ["CommitFeed"]

_PLACES = 256
_KEPT = 16
_KEPT_BYTES = 1024 * 1024


class _Kept(NamedTuple):
    """A decoded commit, for whoever comes to it next.

    Attributes:
        commit: the commit.
        identity: hash of its record.
        size: bytes of its payload.
    """

    commit: Commit
    identity: Hash
    size: int


class CommitFeed:
    """Reads commits in order; used by any thread.

    Args:
        state: where the log and its index are.
    """

    def __init__(self, state: SharedState) -> None:
        self._state = state
        # Replaced as a whole, so that no lock is needed; the newest are last.
        self._kept: dict[int, _Kept] = {}

    def after(self, sequence: int) -> Iterator[tuple[Commit, Hash]]:
        """Yields (commit, identity) of the commits after a number, up to the last when it is reached."""
        while places := self._state.index.commit_places(sequence, _PLACES):
            for number, offset, stored_length in places:
                kept = self._kept.get(number)
                if kept is None:
                    record = self._state.log.read(offset, stored_length)
                    kept = _Kept(Commit.decode(record.payload), record.hash, stored_length)
                    self._keep(number, kept)
                yield kept.commit, kept.identity
                sequence = number

    def _keep(self, number: int, found: _Kept) -> None:
        total = found.size
        if total > _KEPT_BYTES:
            return
        kept = {number: found}
        for other, one in reversed(self._kept.items()):
            total += one.size
            if total > _KEPT_BYTES or len(kept) >= _KEPT:
                break
            kept[other] = one
        self._kept = dict(reversed(kept.items()))
