"""What is wrong with an open database, as all surfaces tell it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from svc.database.head import Head
from svc.database.history import Loss, readable_time
from svc.database.lost import Lost
from svc.findings import Finding
from svc.log import Location, Log, ObservableLocks, Remains, survey_remains
from svc.log.byte_locks import LocksUnavailable
from svc.log.lock_waits import describe_process
from svc.log.scanning import ReadBytes
from svc.paths import format_path

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = [
    "OF_FILE",
    "SavedEnd",
    "ahead_of_clock",
    "database_findings",
    "finding_of_end",
    "finding_of_kept",
    "finding_of_lock",
    "finding_of_loss",
    "saved_ends",
]

logger = logging.getLogger(__name__)

OF_FILE = ("database.lost_commits", "database.cut")
"""Codes of what a verification can't see in the log itself; ``svc verify`` fails for them."""

_AHEAD_MS = 60_000
_PIECE = 1 << 20
_MOST_SHOWN = 5


class SavedEnd(Struct, frozen=True):
    """A copy beside the log of what a recovery cut, and that may hold acknowledged commits."""

    name: str
    remains: Remains

    def finding(self) -> Finding:
        """Returns what there is to say as long as the copy lies there."""
        remains = self.remains
        ending = self.name.rpartition(".cut-")[2]
        commits = remains.possible_commits
        held = f"up to {commits} of them" if commits else "perhaps one of them"
        return Finding(
            "database.cut",
            "database",
            f"A recovery cut {remains.size} bytes that may have held acknowledged commits ({held}) from the "
            f"end of the database: {remains.describe()}. They lie beside it, in the file that ends in "
            f"'.cut-{ending}'.",
            "Look whether the last writes are there, restore a copy if they are not, and move the saved file "
            "away.",
        )


def database_findings(database: Database) -> Iterator[Finding]:
    """Yields what is wrong with a database; costs microseconds and does not block."""
    head = database.head()
    if head.latched:
        yield Finding(
            "database.latched",
            "database",
            "The database takes no writes after an I/O error.",
            "Look at the disk, and start the server anew when it works.",
        )
    if not database.read_only and database.objects.log.storage.is_displaced():
        yield Finding(
            "database.displaced",
            "database",
            "The database was moved, removed or replaced while it is open, or the directory beside it was. "
            "It takes no writes, and what is read is the old one.",
            "Put it back, or start the server anew.",
        )
    elif database.objects.log.storage.size() < head.commit_end:
        yield Finding(
            "database.shortened",
            "database",
            "The file of the database was cut short, or overwritten with an older copy, while it is open. It "
            "takes no writes, and what is not there any more cannot be read.",
            "Stop the server, look with 'svc verify', and restore a copy.",
        )
    yield from finding_of_lock(database)
    if database.objects.index.damaged(1):
        yield Finding(
            "database.damaged",
            "database",
            "Stored objects were found damaged when they were read: what needs them cannot be read.",
            "Look with 'svc verify', and repair with 'svc verify --repair'; what is stored again is whole.",
        )
    damaged = database.objects.index.damaged_commits()
    if damaged:
        yield _finding_of_commits(damaged)
    opened = database.opening
    yield from opened.findings
    yield from _given_up(database)
    yield from _needed(database)
    if opened.saved:
        yield from _still_saved(opened.saved, database.objects.log)
    for finding in ahead_of_clock(head):
        opened.warn_of_clock(finding)
        yield finding


def _given_up(database: Database) -> Iterator[Finding]:
    """Yields a finding for each system directory that a repair gave up, until it is stored again."""
    opened = database.opening
    if opened.given_up is None:
        opened.given_up = Lost.of(database).given_up
    if not opened.given_up:
        return
    system = database.system()
    paths = [format_path(path) for path in opened.given_up if system.get(path) is None]
    if paths:
        yield Finding(
            "database.given_up",
            "database",
            "A repair could not save all directories of the system tree: what plugins kept there is gone.",
            "Look who may do what, enable again what plugins are not enabled any more, and repair again from "
            "a backup if there is one.",
            detail=f"It is about {', '.join(paths)}.",
        )


def _needed(database: Database) -> Iterator[Finding]:
    """Yields a finding while HEAD or a named version needs what a repair could not save."""
    found = database.opening.needed.first(database)
    if found is not None:
        yield Finding(
            "database.lost",
            "database",
            "A repair could not save everything, and what it lost is still needed: it cannot be read.",
            "Look which paths these are with 'svc verify'; repair from a backup, store the files again, or "
            "delete them.",
            detail=f"One is {found}.",
        )


def _finding_of_commits(damaged: list[int]) -> Finding:
    shown = ", ".join(map(str, damaged[:_MOST_SHOWN]))
    rest = len(damaged) - _MOST_SHOWN
    commits = f"commit {shown}" if len(damaged) == 1 else f"commits {shown}"
    more = f" and {rest} more" if rest > 0 else ""
    return Finding(
        "database.damaged_commits",
        "database",
        f"Records were found damaged that say who made a commit, when and what for: of {commits}{more}.",
        "Look with 'svc verify', and repair with 'svc verify --repair'.",
    )


def ahead_of_clock(head: Head) -> Iterator[Finding]:
    """Yields a finding when the last commit lies more than a minute ahead of the clock."""
    ahead_ms = head.time_ms - time.time_ns() // 1_000_000
    if ahead_ms > _AHEAD_MS:
        yield Finding(
            "database.clock",
            "database",
            f"The last commit is dated {readable_time(head.time_ms)}, ahead of the clock. Times of commits "
            "never go back, so that every further commit is dated alike until the clock is there.",
            "Set the clock if it is wrong; if it was wrong then, times of what is written now mean nothing.",
        )


def finding_of_lock(database: Database, *, look: bool = False) -> Iterator[Finding]:
    """Yields a finding when somebody keeps a lock that writers need, if this process waits for it.

    With ``look`` also for a stopped process: that takes milliseconds while somebody commits.
    """
    storage = database.objects.log.storage
    if not isinstance(storage, ObservableLocks):
        return
    try:
        found = storage.held_up(look=look)
    except LocksUnavailable:
        return
    if found is not None:
        yield Finding(
            "database.locked",
            "database",
            "Writes wait: a process holds a lock of the database, and does not give it back.",
            "Let that process go on if it is stopped, or end it; the next writer finishes or undoes what "
            "it was about to write.",
            since_ms=found.since_ms,
            detail=f"It is {describe_process(found.holder)}.",
        )


def finding_of_loss(loss: Loss) -> Finding:
    """Returns the finding that a durable commit is not in the file."""
    return Finding("database.lost_commits", "database", loss.describe(), loss.advice())


def finding_of_end(remains: Remains) -> Finding:
    """Returns the finding that the file ends with something that may have been commits."""
    return Finding(
        "database.damaged_end",
        "database",
        f"Behind byte {remains.offset} the database holds {remains.describe()}: acknowledged commits may be "
        "among that. Whoever opens it for writing saves these bytes beside it and cuts them off.",
        "Look with 'svc verify', and restore a copy if the last writes are missing.",
    )


def finding_of_kept(damaged: Sequence[Location]) -> Finding:
    """Returns the finding that a recovery kept records whose content is damaged: no crash explains them."""
    number = len(damaged)
    records = "1 record that is" if number == 1 else f"{number} records that are"
    return Finding(
        "database.damaged_records",
        "database",
        f"Behind byte {damaged[0].offset} recovery kept {records} whole in length and damaged in content.",
        "'svc verify' names what is hit; restore a copy if you need it.",
    )


def saved_ends(log: Log) -> tuple[SavedEnd, ...]:
    """Reads the copies beside a log of what recoveries cut and may be missed; cheap if there are none."""
    storage = log.storage
    found: list[SavedEnd] = []
    try:
        for name in storage.saved():
            read = partial(storage.read_saved, name)
            remains = survey_remains(read, 0, _size_of(read))
            if remains.may_hold_commit:
                found.append(SavedEnd(name, remains))
    except OSError as error:
        logger.warning("%s: what was cut from it cannot be looked at: %s", storage.name, error)
    return tuple(found)


def _still_saved(saved: Sequence[SavedEnd], log: Log) -> Iterator[Finding]:
    try:
        present = set(log.storage.saved())
    except OSError:
        return
    for one in saved:
        if one.name in present:
            yield one.finding()


def _size_of(read: ReadBytes) -> int:
    size = 0
    while piece := read(size, _PIECE):
        size += len(piece)
    return size
