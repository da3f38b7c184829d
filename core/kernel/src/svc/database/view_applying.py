"""Applying commits to a view's data, in batches, until a transaction is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from svc.database.view import CommitStep
from svc.database.view_batches import Applying, BegunCommits, most_at_once, slices
from svc.database.view_horizon import steps_behind
from svc.database.view_marks import NO_HASH, ViewMark
from svc.database.view_storage import ViewStorage

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["apply_until"]


def apply_until(
    database: Database,
    mark: ViewMark,
    work: Applying,
    storage: ViewStorage,
    horizon: int,
    is_over: Callable[[int], bool],
) -> ViewMark:
    """Applies commits until a transaction is over; leaves what is not done yet in ``work``."""
    taken = 0
    begun, work.begun = work.begun, None
    for commits in _slices(database, mark, work, begun, horizon):
        if work.batch is None:
            work.batch = work.view.begin(storage)
        if begun is not None:
            steps, done = begun.steps, mark.steps
            begun = None
        else:
            done = mark.steps
            steps = iter(work.batch.apply(commits, done) or ())
        last = commits[-1]
        for _ in steps:
            done += 1
            if is_over(0):
                work.batch.end()
                mark = mark._replace(steps=done, more=len(commits) - 1, begun=last.identity, begun_at=horizon)
                work.begun = BegunCommits(mark.pack(), commits, steps, work.batch, storage, work.view)
                return mark
        mark = mark._replace(
            applied=last.commit.sequence,
            identity=last.identity,
            steps=0,
            more=0,
            begun=NO_HASH,
            begun_at=0,
        )
        taken += len(commits)
        if is_over(taken):
            break
    if work.batch is not None:
        work.batch.end()
    return mark


def _slices(
    database: Database, mark: ViewMark, work: Applying, begun: BegunCommits | None, horizon: int
) -> Iterator[Sequence[CommitStep]]:
    """Yields the commits behind the mark as ``apply`` gets them; first those that were begun."""
    after = mark.applied
    if begun is not None:
        yield begun.commits
        after = begun.commits[-1].commit.sequence
    feed = steps_behind(database, work.view, mark, after, horizon)
    if begun is None and mark.steps:
        # As many as they were when they were begun: the number of steps counts over all of them.
        yield tuple(islice(feed, mark.more + 1))
    yield from slices(feed, most_at_once(work.view))
