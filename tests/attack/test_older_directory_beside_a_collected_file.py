"""The directory beside the file is older than a collection: put back, or copied before the file."""

from __future__ import annotations

import random
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from svc.database import Database, collect
from svc.database.collection.plan import Sweeper
from svc.database.collection.running import Collection
from svc.errors import CorruptRecord
from svc.objects.key_index import KeyIndex

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


STEPS = (
    (Collection, "_find"),
    (Collection, "_condemn"),
    (Collection, "_publish_horizon"),
    (Collection, "_open_gate"),
    (KeyIndex, "forget_condemned"),
    (Collection, "_commit_plan"),
    (Sweeper, "_sweep"),
)
"""What a collection calls, in the order in which it first ends."""


def test_copies_of_directory_and_file_from_different_steps(tmp_path: Path) -> None:
    """As they are copied while a collection is at work: the directory first, the file some time later."""
    path, taken = tmp_path / "x.svcdb", []

    def take(name: str) -> None:
        number = len(taken)
        shutil.copy(path, tmp_path / f"{number}.file")
        shutil.copytree(f"{path}.d", tmp_path / f"{number}.directory")
        taken.append(name)

    def around(original: Any, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            take(f"before {name}")
            result = original(*arguments, **named)
            take(f"after {name}")
            return result

        return call

    with Database(path) as database, ExitStack() as stack:
        put_all(database)
        with database.transaction() as transaction:
            for content in CONTENTS:
                transaction.delete(content)
        take("in the beginning")
        for owner, name in STEPS:
            stack.enter_context(mock.patch.object(owner, name, around(getattr(owner, name), name)))
        collect(database, upload_hours=0)
        take("in the end")

    lost = []
    for first, of_directory in enumerate(taken):
        for second in range(first, len(taken)):
            copy = tmp_path / f"{first}-{second}.svcdb"
            shutil.copy(tmp_path / f"{second}.file", copy)
            shutil.copytree(tmp_path / f"{first}.directory", f"{copy}.d")
            try:
                with Database(copy) as database:
                    put_all(database)
                with Database(copy) as database:
                    version = database.at()
                    for name, content in CONTENTS.items():
                        entry = version.get(name)
                        assert entry is not None
                        assert version.read_all(entry) == content
            except CorruptRecord as error:
                lost.append((of_directory, taken[second], error.message))
    assert not lost
