"""A walk of all versions can be held back, by what it reads; but not while a collection waits for it."""

from __future__ import annotations

import threading
import time

from svc.database import CollectionReport, Database, collect
from svc.database.holds import Phase
from svc.hashing import ObjectKind
from svc.log import FIRST
from svc_maintenance.verification import name_damage


def fill(database: Database) -> None:
    """Directories and large files, of which some go again."""
    for number in range(30):
        with database.transaction() as transaction:
            for name in range(20):
                transaction.put((f"d{number}", f"f{name}"), b"%d" % number)
            transaction.put(("large",), database.store_bytes(bytes([number]) * 300_000))


def test_everything_that_is_read_is_told(database: Database) -> None:
    fill(database)
    told: list[int] = []
    report = name_damage(database, [], [], pace=told.append)
    assert report.ok
    kinds = (ObjectKind.NODE, ObjectKind.FILE_RECORD, ObjectKind.COMMIT)
    read = [record.stored_length for record in database.objects.log.scan(FIRST) if record.kind in kinds]
    assert sum(read) * 0.8 <= sum(told) <= sum(read)


def test_who_waits_for_the_walk_is_not_held_back(database: Database) -> None:
    fill(database)
    collected: list[CollectionReport] = []
    collection = threading.Thread(target=lambda: collected.append(collect(database)))
    calls = 0

    def pace(_size: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            collection.start()
            deadline = time.monotonic() + 30
            while database.holds.state()[1] is not Phase.GATED:
                assert time.monotonic() < deadline
                time.sleep(0.01)

    assert name_damage(database, [], [], pace=pace).ok
    collection.join()
    assert calls == 3
    assert collected[0].waiting is None
    assert collected[0].reclaimed_bytes > 0
