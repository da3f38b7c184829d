"""A server whose background process is killed in the middle of a reindex: it goes on, and skips nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from svc_query.indexing import keys
from svc_query.testing.indexed_database import Indexed, Source

from killed_tasks import EXTENT, SECONDS, Rounds, send, shows_progress
from svc_testing import start_server

FILES = 6_000
PLUGINS = ("query", "tasks", "task.reindex")


def numbers(indexed: Indexed) -> dict[bytes, int]:
    """The number of the document at each path, as the rows say: another one means that it was made anew."""
    return indexed.reader.read(
        lambda storage: {key[1:]: int.from_bytes(value, "big") for key, value in storage.scan(keys.PATH)},
        minimum=0,
    )


@pytest.mark.timeout(SECONDS)
def test_a_reindex_goes_on_behind_its_checkpoint_and_skips_nothing(database_path: Path) -> None:
    indexed = Indexed(database_path, Source())
    try:
        indexed.put({f"/d/{number:05}.json": {"title": f"t{number}"} for number in range(FILES)})
        serve = partial(start_server, database_path, "--background", "true", plugins=PLUGINS)
        rounds = Rounds(indexed.database.state_directory, serve)
        for number, server in rounds:
            first = send(server, "POST", "/system/tasks/reindex", {"path": "/d"})["id"]
            rounds.end(server, first)
            before = numbers(indexed)
            assert len(before) == FILES
            # A flush and a checkpoint after each batch, or none at all: both must do.
            args = {"path": "/d", "force": True, "index_flush_ms": 1 + 40_000 * (number % 2)}
            task = send(server, "POST", "/system/tasks/reindex", args)["id"]
            rounds.kill(server, task, shows_progress, 0.8)
            assert rounds.end(server, task)["result"]["files"] == FILES
            after = numbers(indexed)
            assert after.keys() == before.keys()
            skipped = [key for key in before if after[key] <= max(before.values())]
            assert skipped == [], f"seed {EXTENT.seed}, round {number}"
    finally:
        indexed.close()
