"""The background process of a server is killed while it verifies: the task goes on, and overlooks nothing."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from killed_tasks import EXTENT, SECONDS, Rounds, send, shows_progress
from svc.plugin import Database
from svc_testing import start_server

PLUGINS = ("tasks", "task.verify")
FILES = 40
HIT = (0, FILES // 2, FILES - 1)


@pytest.mark.timeout(SECONDS)
def test_verifications_that_are_killed_go_on_and_overlook_nothing(database_path: Path) -> None:
    chance = random.Random(EXTENT.seed)
    with Database(database_path) as database:
        for number in range(FILES):
            with database.transaction() as transaction:
                transaction.put((f"{number:02}",), database.store_bytes(chance.randbytes(200_000)))
        rot(database, [f"{number:02}" for number in HIT])
        commit = database.objects.index.commit_place(FILES // 3)
        assert commit is not None
        with database_path.open("r+b") as file:
            file.seek(commit[0] + 120)
            file.write(b"rotten")
        serve = partial(start_server, database_path, "--background", "true", plugins=PLUGINS)
        rounds = Rounds(database.state_directory, serve)
        for number, server in rounds:
            # The log takes about two seconds, and the versions as long as they have.
            task = send(server, "POST", "/system/tasks/verify", {"bytes_per_second": 4_000_000})["id"]
            rounds.kill(server, task, shows_progress, 2)
            result = rounds.end(server, task)["result"]
            told = (sorted(result["damaged_paths"]), result["damaged_commits"])
            assert told == ([f"/{hit:02}" for hit in HIT], [FILES // 3]), (
                f"seed {EXTENT.seed}, round {number}"
            )
            assert result["bytes"] >= FILES * 200_000
            assert result["commits"] >= FILES


def rot(database: Database, names: list[str]) -> None:
    """Changes some bytes of the first chunks of files."""
    version = database.at()
    with database.path.open("r+b") as file:
        for name in names:
            entry = version.get((name,))
            assert entry is not None
            chunk = entry.hash
            if entry.record is not None:
                chunk = database.objects.read_record(entry.record).chunks[0]
            file.seek(database.objects.find(chunk).offset + 100)
            file.write(b"rotten")
