"""Bytes rot all over a file: from a backup everything is as it was, without one the rest is well."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from attack.scale import EXTENT, SEED
from crash.boots import another_boot
from repair_material import Made, flip, make
from svc.database import Database
from svc.errors import SvcError
from svc_maintenance.repair import FileSource, repair
from svc_maintenance.verification import verify

FLIPPED = EXTENT.scaled(100, most=1000)
"""How many bytes rot; a thousand in a long run."""


@pytest.mark.parametrize("beside", ["its directory", "nothing"])
@pytest.mark.parametrize("backup", [True, False], ids=["with a backup", "without"])
def test_a_thousand_rotten_bytes(memory: Path, backup: bool, beside: str) -> None:
    made = make(memory, commits=EXTENT.scaled(40, most=400))
    chance = random.Random(f"{SEED} {backup} {beside}")
    flip(made.path, *(chance.randrange(len(made.content)) for _ in range(FLIPPED)))
    if beside == "nothing":
        shutil.rmtree(f"{made.path}.d")
    source = FileSource(made.backup)
    with another_boot():
        report = repair(made.path, [source] if backup else [])
        source.database.close()
        with Database(made.path) as database:
            assert not verify(database).damaged
            if backup:
                assert report.ok
                assert database.head().root == made.root
                made.check(database)
            else:
                check_what_is_left(made, database)
    assert not report.damaged


def check_what_is_left(made: Made, database: Database) -> None:
    """Makes sure that what can't be read was named as lost, and that all else reads right."""
    named = {one.path for one in verify(database).lost}
    unread: set[str] = set()
    for root, files in made.versions:
        version = database.version_of(root)
        for path, content in files.items():
            try:
                entry = version.get(path)
                assert entry is not None
                assert version.read_all(entry) == content
            except SvcError as error:
                if not error.details.get("lost"):
                    raise
                unread.add("/" + "/".join(path))
    for path in unread:
        above = {path[:end] or "/" for end in range(len(path) + 1) if path[end : end + 1] in ("/", "")}
        assert named & above, path
    assert unread
