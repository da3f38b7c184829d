"""A collection from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc.database.collection.report import CollectionProgress, CollectionReport

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["collect"]


def collect(
    database: Database,
    *,
    dry_run: bool = False,
    keep_days: float = 0,
    upload_hours: float = 24,
    wait_seconds: float = 60,
    progress: CollectionProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> CollectionReport:
    """Finds what no version needs any more, and gives its space back. Blocks, perhaps for minutes.

    Others go on reading and writing, in this process and in others, and wait for it no longer than 50 ms.

    Args:
        database: the database, open for writing.
        dry_run: only count; nothing at all is changed.
        keep_days: versions without a name stay readable for so many days; 0 keeps the present one.
        upload_hours: for how long chunks are kept that clients uploaded ahead.
        wait_seconds: how long to wait for those who look at what is dead: then nothing is destroyed, and the
            report says who is waited for.
        progress: called now and then.
        should_stop: asked now and then: where it says yes the collection ends, in order, and what it had
            found is left to the next one.

    Raises:
        ReadOnly: the database is open for reading, and it is no dry run.
        InvalidInput: a number makes no sense, or the database lies on a medium that cannot be collected.
        DatabaseBusy: another collection is at work.
        CorruptRecord: what the present version or a ref needs is damaged, so that nobody can say what else
            is needed; nothing was changed.
        InsufficientStorage, DatabaseLatched: as a commit.
    """
    raise NotImplementedError
