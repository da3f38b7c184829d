"""A database with some history, a copy of it, and ways to damage it."""

from __future__ import annotations

import io
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from svc.database import Database
from svc.hashing import Hash, ObjectKind
from svc.log import FIRST, Log, ScannedRecord

__all__ = ["Made", "flip", "make", "records_of"]

Files = dict[tuple[str, ...], bytes]


@dataclass(frozen=True, slots=True)
class Made:
    """The database before it is damaged.

    Attributes:
        path: the file.
        backup: a copy of it.
        content: its bytes.
        root: HEAD's root.
        versions: for each commit its root and all files of it.
    """

    path: Path
    backup: Path
    content: bytes
    root: Hash
    versions: list[tuple[Hash, Files]]

    def check(self, database: Database) -> None:
        """Makes sure that every file of every version reads right."""
        for root, files in self.versions:
            version = database.version_of(root)
            found = {path: version.read_all(entry) for path, entry in version.walk(files_only=True)}
            assert found == files


def make(directory: Path, *, commits: int = 12) -> Made:
    """Makes a database with small, compressed and large files and a snapshot, and a copy of it."""
    path = directory / "x.svcdb"
    chance = random.Random("the content")
    versions: list[tuple[Hash, Files]] = []
    with Database(path) as database:
        for number in range(commits):
            with database.transaction(actor="ada", message=f"number {number}") as transaction:
                transaction.put((f"d{number % 3}", f"f{number}"), chance.randbytes(100 + number))
                transaction.put(("text", f"t{number}"), f"{number} and again ".encode() * 600)
                if number % 5 == 2:
                    large = database.store(io.BytesIO(chance.randbytes(300_000)))
                    transaction.put(("large", f"l{number}"), large)
                if number == 7:
                    transaction.delete(("d0", "f0"))
            version = database.at()
            files = {path: version.read_all(entry) for path, entry in version.walk(files_only=True)}
            versions.append((version.root, files))
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/one", versions[4][0])
        root = database.head().root
    backup = directory / "backup.svcdb"
    shutil.copy(path, backup)
    return Made(path, backup, path.read_bytes(), root, versions)


def records_of(path: Path, kind: ObjectKind | None = None, *, system: bool = False) -> list[ScannedRecord]:
    """Returns the records of a kind, in their order."""
    with Log.open(path, read_only=True) as log:
        return [
            one
            for one in log.scan(FIRST, log.storage.size())
            if kind is None or (one.kind is kind and (one.system == system or kind is ObjectKind.COMMIT))
        ]


def flip(path: Path, *positions: int) -> None:
    """Changes one bit of each of some bytes."""
    with open(path, "r+b") as file:
        for position in positions:
            file.seek(position)
            (byte,) = file.read(1)
            file.seek(position)
            file.write(bytes([byte ^ 4]))
