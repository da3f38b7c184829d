"""The background process of a server is killed while it collects: the task begins anew, nothing is lost."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from killed_tasks import EXTENT, SECONDS, Rounds, send
from svc.hashing import ObjectKind
from svc.log import FIRST, CollectableStorage
from svc.plugin import Database
from svc_maintenance.verification import verify
from svc_testing import start_server

PLUGINS = ("versions", "tasks", "task.gc")
SETTINGS = {"safety_snapshot": False}
FILES = 12_000
"""Of a round; the collection has as many records to destroy, which takes some tenths of a second."""


@pytest.mark.timeout(SECONDS)
def test_collections_that_are_killed_are_done_again_and_lose_nothing(database_path: Path) -> None:
    chance = random.Random(EXTENT.seed)
    kept = chance.randbytes(2_000_000)
    with Database(database_path) as database:
        with database.transaction() as transaction:
            transaction.put(("kept",), database.store_bytes(kept))
        serve = partial(start_server, database_path, "--background", "true", plugins=PLUGINS)
        rounds = Rounds(database.state_directory, serve)
        storage = database.objects.log.storage
        assert isinstance(storage, CollectableStorage)
        for number, server in rounds:
            send(server, "PUT", "/system/plugins/task.gc/configuration", SETTINGS)
            present = {f"{file:05}": chance.randbytes(300) for file in range(FILES)}
            with database.transaction() as transaction:
                for name, content in present.items():
                    transaction.put(("round", name), content)
            del transaction
            task = send(server, "POST", "/system/tasks/gc")["id"]
            rounds.kill(server, task, lambda _: storage.is_collected_by_others(), 0.5)
            assert rounds.end(server, task)["result"]["waiting"] is None
            version = database.at()
            entry = version.get(("kept",))
            assert entry is not None
            assert version.read_all(entry) == kept
            found = {name: version.read_all(one) for name, one in version.entries(("round",))}
            assert found == present, f"seed {EXTENT.seed}, round {number}"
        assert verify(database).damaged == []
        assert allocated(database) < 1.2 * not_void(database) + 4_000_000
        assert not_void(database) < commits(database) + 12_000_000, "two states of five megabytes at most"


def allocated(database: Database) -> int:
    """Bytes that the file takes on its disk."""
    return database.path.stat().st_blocks * 512


def not_void(database: Database) -> int:
    """Bytes of the records that stand in the log."""
    records = database.objects.log.scan(FIRST)
    return sum(one.end - one.offset for one in records if one.kind is not ObjectKind.VOID)


def commits(database: Database) -> int:
    """Those of the commits, which stay: each names all files that it changed."""
    records = database.objects.log.scan(FIRST)
    return sum(one.end - one.offset for one in records if one.kind is ObjectKind.COMMIT)
