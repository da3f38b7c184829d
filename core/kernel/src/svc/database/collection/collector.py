"""A collection from its beginning to its end.

In this order, which is what keeps everything that somebody needs:

1. mark what the present version, the refs and the commits since the horizon need;
2. walk the log: what is not marked is dead, and is set apart in the key index, where it can be read but is
   not found by those who would store it again;
3. make the horizon known, begin a new generation, and wait until nobody holds an earlier one;
4. mark what was committed meanwhile: what it needs comes to life again;
5. forget what was set apart, and commit the plan of the sweep, under one lock;
6. sweep, and commit that it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from svc.database.collection.kept_commits import DAY_MS
from svc.database.collection.pins import MOST_HOURS, UPLOAD_HOURS
from svc.database.collection.report import CollectionProgress, CollectionReport
from svc.errors import DatabaseBusy, InvalidInput, ReadOnly
from svc.log import CollectableStorage

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["collect"]


def collect(
    database: Database,
    *,
    dry_run: bool = False,
    keep_days: float = 0,
    upload_hours: float = UPLOAD_HOURS,
    wait_seconds: float = 60,
    before: Callable[[], None] | None = None,
    progress: CollectionProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> CollectionReport:
    """Finds what no version needs any more, and gives its space back. Blocks, perhaps for minutes.

    Others go on reading and writing, in this process and in others, and wait for it no longer than 50 ms.

    Args:
        database: the database, open for writing.
        dry_run: only count; nothing at all is changed.
        keep_days: versions without a name stay readable for so many days; 0 keeps the present one.
        upload_hours: for how long chunks are kept that clients uploaded ahead; 720 at most.
        wait_seconds: how long to wait for those who look at what is dead: then nothing is destroyed, and the
            report says who is waited for.
        before: called once nobody else can collect, and before anything is looked for: it may commit what is
            to be kept. Not called by a dry run.
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
    from svc.database.collection.running import Collection

    for name, value, most in (
        ("keep_days", keep_days, 100_000),
        ("upload_hours", upload_hours, MOST_HOURS),
        ("wait_seconds", wait_seconds, 86_400),
    ):
        if not 0 <= value <= most:
            raise InvalidInput(f"{name} is a number from 0 to {most:,}.", field=name)
    began = time.monotonic()
    with _alone(database, dry_run) as storage:
        collection = Collection(database, storage, before, progress, should_stop)
        report = collection.run(
            dry_run=dry_run,
            keep_ms=int(keep_days * DAY_MS),
            upload_ms=int(upload_hours * 3_600_000),
            wait_seconds=wait_seconds,
        )
    return replace(report, duration_ms=round((time.monotonic() - began) * 1000), dry_run=dry_run)


@contextmanager
def _alone(database: Database, dry_run: bool) -> Iterator[CollectableStorage]:
    """Makes sure that no other collection runs; a dry run is refused meanwhile, but does not block others."""
    database._require_open()
    if database.read_only and not dry_run:
        raise ReadOnly("The database is open for reading only.")
    storage = database.objects.log.storage
    if not isinstance(storage, CollectableStorage):
        raise InvalidInput("The database lies on a medium whose garbage cannot be collected.")
    if dry_run:
        if database.collects or storage.is_collected_by_others():
            raise _busy()
        yield storage
        return
    if not database.begin_collecting():
        raise _busy()
    try:
        if not storage.try_acquire_collection():
            raise _busy()
        try:
            yield storage
        finally:
            storage.release_collection()
    finally:
        database.end_collecting()


def _busy() -> DatabaseBusy:
    return DatabaseBusy("Another collection is at work; try again when it has ended.", retry_after=10)
