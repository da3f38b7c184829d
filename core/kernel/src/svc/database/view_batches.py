"""How many commits a batch gets at once, and what is left in the middle of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from svc.database.view import CommitStep, View, ViewBatch
from svc.database.view_storage import ViewStorage

__all__ = ["MOST_AT_ONCE", "Applying", "BegunCommits", "most_at_once", "slices"]

MOST_AT_ONCE = 64
"""Commits that ``ViewBatch.apply`` gets in one call."""

_MOST_CHANGES = 4096
"""Changes that they name together, unless one commit names more."""


def most_at_once(view: View) -> int:
    """Returns how many commits a batch of this view gets in one call, at most."""
    return 1 if type(view).begin is View.begin else MOST_AT_ONCE


def slices(feed: Iterable[CommitStep], most: int) -> Iterator[Sequence[CommitStep]]:
    """Yields commits in runs that one call of ``apply`` gets."""
    run: list[CommitStep] = []
    changes = 0
    for step in feed:
        count = sum(len(transaction.changes) for transaction in step.commit.transactions)
        mixes = bool(run) and run[-1].is_collected != step.is_collected
        if run and (mixes or len(run) >= most or changes + count > _MOST_CHANGES):
            yield tuple(run)
            run, changes = [], 0
        run.append(step)
        changes += count
        if most == 1:
            yield tuple(run)
            run, changes = [], 0
    if run:
        yield tuple(run)


class BegunCommits(NamedTuple):
    """Commits in the middle of which a transaction ended, to go on with.

    Where another ``mark`` stands in the storage, somebody else has gone on. ``steps`` is what ``apply`` gave.
    """

    mark: bytes
    commits: Sequence[CommitStep]
    steps: Iterator[None]
    batch: ViewBatch
    storage: ViewStorage
    view: View


class Applying(Struct):
    """What one transaction applies commits with; ``batch`` is there from the first commit on.

    ``begun`` are the commits in the middle of which it goes on, or has ended.
    """

    view: View
    batch: ViewBatch | None = None
    begun: BegunCommits | None = None

    def close(self) -> None:
        """Lets go of the batch, which may be in the middle of anything."""
        if self.batch is not None:
            self.batch.close()
