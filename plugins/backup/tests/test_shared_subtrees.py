"""A directory that is named half a billion times is one node a level: nothing walks it path by path."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from svc.errors import PayloadTooLarge
from svc.plugin import Database, Hash
from svc_backup.format import IncomingFile, check_incoming, plan_export, plan_patch
from svc_maintenance.verification import verify

LEVELS = 29
"""2^28 files by their paths, and some thirty nodes."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.svcdb"


def bomb(database: Database, name: str, content: bytes) -> Hash:
    """Makes a directory of 2^28 files that are all the same, and returns the root."""
    with database.transaction() as transaction:
        transaction.put((name, "a", "f"), content)
        for _ in range(LEVELS - 1):
            transaction.copy((name, "a"), (name, "b"))
            transaction.move((name,), ("next", "a"))
            transaction.move(("next",), (name,))
    return database.head().root


@pytest.mark.timeout(60)
def test_a_verification_an_export_and_its_check_visit_each_node_once(path: Path) -> None:
    with Database(path) as database:
        root = bomb(database, "d", b"x")
        assert database.totals().files == 2 ** (LEVELS - 1)
        assert verify(database).ok
        export = path.with_name("export")
        with closing(plan_export(database, root)) as outgoing:
            export.write_bytes(b"".join(outgoing.pieces()))
    descriptor = os.open(export, os.O_RDONLY)
    try:
        with IncomingFile(descriptor) as incoming:
            assert check_incoming(incoming).directories <= LEVELS + 2
    finally:
        os.close(descriptor)


@pytest.mark.timeout(60)
def test_a_patch_compares_two_directories_once_and_names_a_bounded_number_of_paths(path: Path) -> None:
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("f",), b"x")
        empty = database.head().root
        one = bomb(database, "d", b"1")
        with database.transaction() as transaction:
            transaction.delete(("d",), recursive=True)
        other = bomb(database, "d", b"2")
        for base, target, expected in (
            (empty, one, (2 ** (LEVELS - 1), 0, 0)),
            (one, other, (0, 2 ** (LEVELS - 1), 0)),
        ):
            with closing(plan_patch(database, base, target)) as patch:
                changes = patch.counts.changes
                assert changes is not None
                assert (changes.added, changes.modified, changes.deleted) == expected
        with pytest.raises(PayloadTooLarge, match="export the version instead"):
            plan_patch(database, one, empty)
