"""The rule of opening: what is done with what a scan of the log, the index's mark and HEAD's cell say.

The table in docs/durability-inside.md is this rule, and its test.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

__all__ = ["Cell", "Found", "Index", "Verdict", "decide"]


class Index(Enum):
    """How far the key index goes, if it can be trusted."""

    NONE = "none"
    BEHIND = "behind"
    LEVEL = "level"


class Cell(Enum):
    """What HEAD's cell says, if it was written since the machine started and is of this file.

    ``LATCHED``: a sync has failed behind the commit that it names, and none that is proved came later.
    """

    NONE = "none"
    HEAD = "a commit"
    LATCHED = "a failed sync"


class Verdict(Enum):
    """What an opening does."""

    OPEN = "open"
    ROLL_FORWARD = "roll forward"
    INDEX_ASIDE = "index aside"
    CUT_TORN = "cut what is torn"
    CUT_UNSYNCED = "cut what was not synced"
    REFUSE_LOST = "refuse: a commit is lost"
    REFUSE_SHORT = "refuse: the file is short"
    REFUSE_BROKEN = "refuse: a commit is missing"
    REFUSE_BUSY = "refuse: the directory was replaced"


class Found(Struct, frozen=True):
    """What an opening finds, before it changes anything.

    Attributes:
        writes: whether the database is opened for writing.
        alone: whether nobody else has it open.
        is_lost: whether a commit is not in the log that is proved to have been durable; a writer looks for
            it where it is alone.
        is_short: whether the file has fewer bytes than were written since the machine started.
        is_broken: whether a commit is missing before another one that no crash explains; looked for likewise.
        index: whether it goes up to the last commit: of the log, or that the cell names where others write.
        cell: what HEAD's cell says.
    """

    writes: bool
    alone: bool
    is_lost: bool
    is_short: bool
    is_broken: bool
    index: Index
    cell: Cell


def decide(found: Found) -> Verdict:
    """Returns what an opening does: changes nothing, and depends on nothing else."""
    if not found.writes:
        is_whole = found.index is Index.LEVEL and not found.is_lost
        return Verdict.OPEN if is_whole else Verdict.INDEX_ASIDE
    if found.is_lost:
        return Verdict.REFUSE_LOST
    if found.is_short:
        return Verdict.REFUSE_SHORT
    if found.alone and found.cell is Cell.LATCHED:
        return Verdict.CUT_UNSYNCED
    if found.is_broken:
        return Verdict.REFUSE_BROKEN
    if found.alone:
        return Verdict.CUT_TORN
    if found.index is Index.NONE:
        return Verdict.REFUSE_BUSY
    if found.index is Index.BEHIND or found.cell is Cell.NONE:
        return Verdict.ROLL_FORWARD
    return Verdict.OPEN
