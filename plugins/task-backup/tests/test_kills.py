"""A server whose background process is killed while it writes a backup: it begins anew, and none is half."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from killed_tasks import EXTENT, SECONDS, Rounds, send, shows_progress
from svc.plugin import Database
from svc_backup.format import IncomingFile, check_incoming
from svc_testing import start_server

PLUGINS = ("backup", "tasks", "task.backup")


def require_whole(path: Path, root: str) -> None:
    with path.open("rb") as stream, IncomingFile(stream.fileno(), path.name) as file:
        check_incoming(file)
        assert file.root.hex() == root


@pytest.mark.timeout(SECONDS)
def test_a_backup_is_whole_or_not_there_and_the_kept_ones_stay(database_path: Path) -> None:
    written: dict[str, str] = {}
    directory = database_path.parent / "backups"
    with Database(database_path) as database:
        with database.transaction() as transaction:
            for number in range(40):
                transaction.put((f"large{number}",), database.store_bytes(os.urandom(3_000_000)))
        serve = partial(start_server, database_path, "--background", "true", plugins=PLUGINS)
        rounds = Rounds(database.state_directory, serve)
        for number, server in rounds:
            with database.transaction() as transaction:
                transaction.put(("round",), str(number).encode())
            task = send(server, "POST", "/system/tasks/backup", {"retention_count": 3})["id"]
            rounds.kill(server, task, shows_progress, 0.3)
            # What is there is whole, at any time, and the old ones stay until the new one is there.
            present = {path.name for path in directory.glob("*.svcdb")}
            assert set(list(written)[-3:]) - present <= set(list(written)[:-2])
            result = rounds.end(server, task)["result"]
            assert result["version"] == database.head().root.hex()
            written[result["file"]] = result["version"]
            kept = list(written)[-3:]
            assert sorted(os.listdir(directory)) == kept, f"seed {EXTENT.seed}, round {number}"
            for name in kept:
                require_whole(directory / name, written[name])
