"""Describes bytes that are no valid part of a log: its end after a crash, or a copy of what was cut.

It tells unfinished from damaged records, and whether an acknowledged commit may be among them.
"""

from __future__ import annotations

from msgspec import Struct

from svc.errors import CorruptRecord, UnsupportedFormat
from svc.hashing import ObjectKind
from svc.log.framing import RECORD_HEADER_SIZE, decode_header, record_size
from svc.log.scanning import ReadBytes, find_header, scan_records

__all__ = ["Remains", "count", "survey_remains"]

_PIECE = 1 << 20


class Remains(Struct, frozen=True):
    """What a stretch of a log holds.

    Attributes:
        records: whole records, checksums and all; ``commits`` counts the commits among them.
        damaged: records whole in length, wrong in content; ``damaged_commits`` are commits by their headers.
        unreadable: bytes in which no record stands.
        unfinished: bytes of a last record that the end cuts off; fewer than a header may be anything's.
        unfinished_commit: whether a header says that this last record is a commit.
        zeros: whether all of it is zero.
    """

    offset: int
    size: int
    records: int = 0
    commits: int = 0
    damaged: int = 0
    damaged_commits: int = 0
    unreadable: int = 0
    unfinished: int = 0
    unfinished_commit: bool = False
    zeros: bool = False

    @property
    def is_only_unfinished(self) -> bool:
        """Whether it is the beginning of one record and nothing else: what a killed append leaves."""
        return self.unfinished == self.size

    @property
    def may_hold_commit(self) -> bool:
        """Whether an acknowledged commit may be in it, as far as its bytes tell.

        A commit has a payload: what is no longer than a header holds none, unless it was cut off.
        """
        if self.zeros or self.size <= RECORD_HEADER_SIZE:
            return self.unfinished_commit
        return not self.is_only_unfinished or self.unfinished_commit

    @property
    def possible_commits(self) -> int:
        """How many commits it holds by what can be read: whole, damaged or unfinished."""
        return self.commits + self.damaged_commits + self.unfinished_commit

    def describe(self) -> str:
        """Returns what it is, as the end of a sentence: ``2 whole records (1 commit) and ...``."""
        if self.zeros:
            return "nothing but zeros"
        parts: list[str] = []
        if self.records:
            commits = f" ({count(self.commits, 'commit')})" if self.commits else ""
            parts.append(f"{count(self.records, 'whole record')}{commits}")
        if self.damaged:
            commits = f" ({count(self.damaged_commits, 'commit')})" if self.damaged_commits else ""
            verb = "is" if self.damaged == 1 else "are"
            parts.append(
                f"{count(self.damaged, 'record')}{commits} that {verb} whole in length and damaged in content"
            )
        if self.unreadable:
            parts.append(f"{count(self.unreadable, 'byte')} in which no record can be read")
        if self.unfinished:
            record = "commit" if self.unfinished_commit else "record"
            parts.append(f"{count(self.unfinished, 'byte')} of a {record} that is unfinished or cut short")
        return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else "nothing"


def count(number: int, noun: str) -> str:
    """Returns ``1 commit``, ``2 commits``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def survey_remains(read: ReadBytes, offset: int, end: int) -> Remains:
    """Reads and describes what stands from ``offset``, a multiple of eight, to ``end``; memory is bounded."""
    if _all_zero(read, offset, end):
        return Remains(offset, end - offset, zeros=True)
    records = commits = damaged = damaged_commits = unreadable = unfinished = 0
    unfinished_commit = False
    position = offset
    while position < end:
        try:
            for record in scan_records(read, position, end, verify=True):
                records += 1
                commits += record.kind is ObjectKind.COMMIT
                position = record.end
        except UnsupportedFormat as error:
            unreadable += end - int(error.details["offset"])
            break
        except CorruptRecord as error:
            position = int(error.details["offset"])
            data = read(position, min(RECORD_HEADER_SIZE, end - position))
            if len(data) < RECORD_HEADER_SIZE:
                unfinished = end - position
                break
            header = decode_header(data, 0, position)
            if header is None:
                following = find_header(read, position + 8, end)
                unreadable += (end if following is None else following) - position
                position = end if following is None else following
                continue
            is_commit = header.kind is ObjectKind.COMMIT
            following = position + record_size(header.stored_length)
            if following > end:
                unfinished, unfinished_commit = end - position, is_commit
                break
            damaged += 1
            damaged_commits += is_commit
            position = following
    return Remains(
        offset,
        end - offset,
        records,
        commits,
        damaged,
        damaged_commits,
        unreadable,
        unfinished,
        unfinished_commit,
    )


def _all_zero(read: ReadBytes, offset: int, end: int) -> bool:
    while offset < end:
        piece = read(offset, min(_PIECE, end - offset))
        if not piece:
            break
        if any(piece):
            return False
        offset += len(piece)
    return True
