"""The directory beside the file is older than a collection: put back from a copy, or copied before the file."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from svc.database import Database, collect

LARGE = random.Random(1).randbytes(400_000)
SMALL = random.Random(2).randbytes(3000)
CONTENTS = {("large",): LARGE, ("small",): SMALL}


def put_all(database: Database) -> None:
    for path, content in CONTENTS.items():
        with database.transaction() as transaction:
            transaction.put(path, database.store_bytes(content))


@pytest.mark.parametrize("copied", ["when it was closed", "while it was open"])
def test_what_was_collected_is_stored_again(tmp_path: Path, copied: str) -> None:
    path, beside, older = tmp_path / "x.svcdb", tmp_path / "x.svcdb.d", tmp_path / "older"
    database = Database(path)
    put_all(database)
    with database.transaction() as transaction:
        for name in CONTENTS:
            transaction.delete(name)
    if copied == "when it was closed":
        database.close()
    shutil.copytree(beside, older)
    if copied == "when it was closed":
        database = Database(path)
    assert collect(database, upload_hours=0).reclaimed_bytes > len(LARGE)
    database.close()
    shutil.rmtree(beside)
    shutil.copytree(older, beside)

    with Database(path) as database:
        put_all(database)  # acknowledged
    with Database(path) as database:
        version = database.at()
        for name, content in CONTENTS.items():
            entry = version.get(name)
            assert entry is not None
            assert version.read_all(entry) == content
