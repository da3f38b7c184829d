"""Which commits a collection keeps, and what each of them needs, though records of commits may be damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.clock import now_ms
from svc.database.commit import CommitSummary
from svc.database.lost import Lost
from svc.errors import CorruptRecord, NotFound
from svc.hashing import Hash

if TYPE_CHECKING:
    from svc.database.database import Database
    from svc.database.head import Head

__all__ = ["DAY_MS", "first_kept", "needed_roots", "unkept_versions"]

DAY_MS = 86_400_000


def unkept_versions(database: Database, keep_days: float) -> tuple[int, int | None]:
    """Returns how many versions a collection would let go, and the time of the oldest, in Unix milliseconds.

    Those of them that a ref names stay all the same, and so does what a later commit has again. Costs
    O(log n).
    """
    head, first = database.head(), max(1, database.horizon())
    count = first_kept(database, head, int(now_ms() - keep_days * DAY_MS) if keep_days else None) - first
    oldest = _first_whole(database, first, head.sequence) if count > 0 else None
    return max(0, count), None if oldest is None else oldest.time_ms


def first_kept(database: Database, head: Head, since_ms: int | None) -> int:
    """Returns the number of the last commit before the time from which on versions are kept.

    What is before the horizon is not kept in any case, and may be damaged or lost. Of a damaged commit behind
    it the next whole one says how old it is at least. None keeps the present version alone.
    """
    last = head.sequence
    if since_ms is None or not last:
        return last
    first = found = max(1, database.horizon())
    while first <= last:  # Times never go back from one commit to the next.
        middle = (first + last) // 2
        whole = _first_whole(database, middle, last)
        if whole is not None and whole.time_ms <= since_ms:
            found, first = whole.sequence, whole.sequence + 1
        else:
            last = middle - 1
    return found


def needed_roots(database: Database, sequence: int, head: Head) -> tuple[Hash, ...]:
    """Returns the roots of the trees that a commit's version is made of.

    Of a commit whose record is damaged or lost the next one says it. Where that is gone too, a commit that a
    repair has given up needs nothing: nobody can come to its version any more. Else raises ``CorruptRecord``.
    """
    if sequence == head.sequence:
        return head.root, head.system_root
    summary = _summary(database, sequence)
    if summary is not None:
        return summary.root, summary.system_root
    try:
        behind = database.commit(sequence + 1)
    except (CorruptRecord, NotFound) as error:
        if sequence in Lost.of(database).commits:
            return ()
        raise CorruptRecord(
            f"Commit {sequence} and the one behind it cannot be read: nobody can say what they need, so "
            "nothing is collected. See 'svc verify', and repair the database first."
        ) from error
    return behind.parent_root, behind.parent_system_root


def _first_whole(database: Database, sequence: int, last: int) -> CommitSummary | None:
    found = (_summary(database, number) for number in range(sequence, last + 1))
    return next((summary for summary in found if summary is not None), None)


def _summary(database: Database, sequence: int) -> CommitSummary | None:
    try:
        return CommitSummary.decode(database._state.commit_payload(sequence)[0])
    except (CorruptRecord, NotFound):
        return None
