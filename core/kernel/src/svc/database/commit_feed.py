"""The commits of a database in order, read and decoded once for all views that follow them."""

from __future__ import annotations

from collections.abc import Iterator

from svc.database.commit import Commit
from svc.database.packed_commits import commit_identity, last_of_range
from svc.database.state import SharedState
from svc.errors import CorruptRecord
from svc.hashing import Hash

__all__ = ["CommitFeed"]

_PLACES = 256
_KEPT = 256
_KEPT_BYTES = 512 * 1024


class CommitFeed:
    """Reads commits in order, in any thread; keeps the last 256 to 512 decoded, unless they are large."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        # By number: those since the older ones were the young ones. Threads may race harmlessly, as in a
        # ReadCache.
        self._young: dict[int, tuple[Commit, Hash]] = {}
        self._older: dict[int, tuple[Commit, Hash]] = {}
        self._young_bytes = 0

    def after(self, sequence: int) -> Iterator[tuple[Commit, Hash]]:
        """Yields (commit, identity) of the commits after a number, up to the last when it is reached.

        ``CorruptRecord``: the key index names a commit that is not there yet.
        """
        while places := self._state.index.commit_places(sequence, _PLACES):
            for number, offset, stored_length in places:
                if number > sequence + 1:
                    self._refuse_future(number)
                    yield from self._packed(sequence, number)
                found = self._known(number)
                if found is None:
                    payload, identity = self._state.commit_payload_at(number, offset, stored_length)
                    found = self._keep(number, payload, identity)
                yield found
                sequence = number

    def _refuse_future(self, number: int) -> None:
        last = self._state.head().sequence
        if number > last + 1:  # the next one may be indexed already
            raise CorruptRecord(
                f"The key index is damaged: it names commit {number}, and {last} is the last one. "
                "'svc verify --repair' makes it anew."
            )

    def _packed(self, after: int, before: int) -> Iterator[tuple[Commit, Hash]]:
        sequence = after + 1
        while sequence < before:
            for number, payload in self._state.packed_beside(sequence).items():
                if after < number < before:
                    yield self._known(number) or self._keep(number, payload, commit_identity(payload))
            sequence = last_of_range(sequence) + 1

    def _known(self, number: int) -> tuple[Commit, Hash] | None:
        return self._young.get(number) or self._older.get(number)

    def _keep(self, number: int, payload: bytes, identity: Hash) -> tuple[Commit, Hash]:
        found = Commit.decode(payload), identity
        size = len(payload)
        if size <= _KEPT_BYTES:
            if self._young_bytes + size > _KEPT_BYTES or len(self._young) >= _KEPT:
                self._older, self._young, self._young_bytes = self._young, {}, 0
            self._young[number] = found
            self._young_bytes += size
        return found
