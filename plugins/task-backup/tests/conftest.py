"""A database to back up, and a context as the driver of tasks hands it to a run."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from svc_task_backup.files import BackupFiles
from svc_task_backup.task import BACKUP

from svc.plugin import Database
from svc_backup.format import IncomingFile
from svc_backup.importing import ImportOptions, import_incoming


class Context:
    """What a run is handed; keeps what it was told, and does something at each step."""

    def __init__(self, database: Database, args: dict[str, Any], checkpoint: Any = None) -> None:
        self.task_id = "0" * 32
        self.args = args
        self.database = database
        self.configuration = None
        self.logger = logging.getLogger("test")
        self.actor = None
        self.checkpoint = checkpoint
        self.steps: list[tuple[int, str | None]] = []
        self.total = 0
        self.on_step: Callable[[], None] = lambda: None

    def begin(self, total: int, message: str | None = None, *, done: int = 0) -> None:
        self.total = total

    def advance(self, count: int, message: str | None = None) -> None:
        self.steps.append((count, message))
        self.on_step()

    def save_checkpoint(self, value: Any) -> None:
        self.checkpoint = json.loads(json.dumps(value))

    def check(self) -> None:
        pass

    def is_cancelled(self) -> bool:
        return False

    def should_stop(self) -> bool:
        return False


class Backups:
    """Runs the task type on a database, and reads what it has written."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.directory = database.path.parent / "backups"

    def context(self, checkpoint: Any = None, **args: Any) -> Context:
        return Context(self.database, BACKUP.normalize(args, None), checkpoint)

    def __call__(self, context: Context | None = None, **args: Any) -> Any:
        return BACKUP.run(context or self.context(**args))

    def write(self, files: dict[str, bytes | None]) -> None:
        with self.database.transaction() as transaction:
            for name, content in files.items():
                if content is None:
                    transaction.delete((name,))
                else:
                    transaction.put((name,), content)

    def names(self, directory: Path | None = None) -> list[str]:
        return sorted(os.listdir(directory or self.directory))

    def files(self) -> BackupFiles:
        return BackupFiles.of(self.directory, self.database.path, self.database.database_id)


def contents(database: Database) -> dict[str, bytes]:
    """All files of HEAD."""
    version = database.at()
    return {
        "/".join(path): version.read_all(entry) for path, entry in version.walk_files() if entry is not None
    }


def restored(path: Path, *files: Path) -> dict[str, bytes]:
    """The files of a new database into which backups were imported, one after the other."""
    with Database(path) as database:
        for file in files:
            with file.open("rb") as stream, IncomingFile(stream.fileno(), file.name) as incoming:
                import_incoming(database, incoming, ImportOptions(promote=True))
        return contents(database)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "data").mkdir()
    with Database(tmp_path / "data" / "shop.svcdb") as opened:
        yield opened


@pytest.fixture
def backups(shop: Database) -> Backups:
    made = Backups(shop)
    made.write({"a": b"1", "large": os.urandom(300_000)})
    return made
