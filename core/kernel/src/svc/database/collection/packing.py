"""Puts old commit records into packs, so that their places in the log are of no use any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from svc.database.commit import CommitSummary
from svc.database.packed_commits import (
    LARGEST_PACKED,
    RANGE,
    encode_pack,
    last_of_range,
    may_be_packed,
    pack_path,
)
from svc.errors import CorruptRecord, UnsupportedFormat
from svc.log import ScannedRecord

if TYPE_CHECKING:
    from svc.database.database import Database
    from svc.database.head import Head
    from svc.database.state import SharedState

__all__ = ["LAST_COMMITS", "LoggedCommits", "missing_packs", "pack_commits"]

LAST_COMMITS = 64
"""How many of the last commits stay in the log."""

_FEWEST = 32
"""A range with fewer commits that can be packed stays as it is."""

_BYTES_AT_ONCE = 1 << 20
_MESSAGE = "Collect garbage: pack"

Pack = tuple[int, dict[int, bytes]]
"""The last number of a range, and the payloads of its commits by their numbers."""


def missing_packs(state: SharedState, head: Head) -> Iterator[Pack]:
    """Reads the log and yields missing packs; ranges with a damaged commit wait: a repair may restore it."""
    known = state.packs.ranges(head.system_root)
    for last in range(RANGE, head.sequence - LAST_COMMITS + 1, RANGE):
        if last in known:
            continue
        small = [
            sequence
            for sequence, _, length in state.index.commit_places(last - RANGE, RANGE)
            if sequence < last and length <= LARGEST_PACKED
        ]
        if len(small) < _FEWEST:
            continue
        try:
            yield last, {sequence: state.commit_payload(sequence)[0] for sequence in small}
        except (CorruptRecord, UnsupportedFormat):
            continue


def pack_commits(
    database: Database,
    head: Head,
    locked: Callable[[Callable[[int], object], int], None],
    pause: Callable[[], None],
) -> None:
    """Commits the packs that are missing, and lets their commits be found there alone. Blocks.

    What stands in the log stays there until a sweep. Whoever dies on the way leaves commits that stand in
    both, or whose places nobody knows: both can be read.
    """
    state = database._state
    for sequences in _held_twice(state, head):
        locked(partial(_forget, state, sequences), len(sequences))
        pause()
    batch: list[Pack] = []
    size = 0

    def commit() -> None:
        with database.transaction(message=_MESSAGE) as transaction:
            for last, payloads in batch:
                transaction.put_system(pack_path(last), encode_pack(payloads))
        for _, payloads in batch:
            locked(partial(_forget, state, payloads), len(payloads))
        batch.clear()
        pause()

    for pack in missing_packs(state, head):
        batch.append(pack)
        size += sum(map(len, pack[1].values()))
        if size >= _BYTES_AT_ONCE:
            commit()
            size = 0
    if batch:
        commit()


def _forget(state: SharedState, sequences: Iterable[int], _count: int) -> None:
    state.index.forget_commits(sequences)


def _held_twice(state: SharedState, head: Head) -> Iterator[list[int]]:
    """Yields commits in packs that the index still has offsets of: it was rebuilt, or a process died."""
    known = state.packs.ranges(head.system_root)
    after = 0
    while known and (places := state.index.commit_places(after, RANGE)):
        after = places[-1][0]
        found = [
            sequence
            for sequence, _, length in places
            if length <= LARGEST_PACKED and may_be_packed(sequence) and last_of_range(sequence) in known
        ]
        with suppress(CorruptRecord):
            found = [one for one in found if one in state.packs.beside(head.system_root, one)]
            if found:
                yield found


class LoggedCommits:
    """Which commit records of the log are needed there; commits after ``head`` are not asked for."""

    def __init__(self, state: SharedState, head: Head) -> None:
        self._state = state
        self._root = head.system_root
        self._needed = BitMap64()
        after = 0
        has_packs = bool(state.packs.ranges(self._root))
        while has_packs and (places := state.index.commit_places(after, RANGE * 32)):
            self._needed.update(offset >> 3 for _, offset, _ in places)
            after = places[-1][0]
        self._has_packs = has_packs

    def is_packed(self, record: ScannedRecord) -> bool:
        """Whether a pack holds the very commit of a record, so that the record itself is not needed."""
        if not self._has_packs or record.offset >> 3 in self._needed or record.stored_length > LARGEST_PACKED:
            return False
        try:
            payload = self._state.log.read_payload(record.offset, record.stored_length, record.hash)
            sequence = CommitSummary.decode(payload).sequence
            return self._state.packs.beside(self._root, sequence).get(sequence) == payload
        except (CorruptRecord, UnsupportedFormat):
            return False
