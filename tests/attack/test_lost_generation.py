"""The cell that counts the generations of collections is lost or rots while somebody is about to commit."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Database, collect
from svc.errors import SvcError

LARGE = random.Random(1).randbytes(300_000)

Rot = Callable[[Path], object]
ROTS: dict[str, Rot] = {
    "nothing": lambda cell: None,
    "removed": lambda cell: cell.unlink(),
    "emptied": lambda cell: cell.write_bytes(b""),
    "zeros": lambda cell: cell.write_bytes(bytes(len(cell.read_bytes()))),
    "rubbish": lambda cell: cell.write_bytes(b"\xff" * len(cell.read_bytes())),
    **{f"bit {at}": lambda cell, at=at: flip(cell, at) for at in range(0, 192, 13)},
}


def flip(cell: Path, at: int) -> None:
    content = bytearray(cell.read_bytes())
    content[at % len(content)] ^= 4
    cell.write_bytes(content)


@pytest.mark.parametrize("name", ROTS)
def test_what_was_found_before_survives(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        for number in range(3):
            with database.transaction() as transaction:
                transaction.put(("junk",), database.store_bytes(random.Random(number).randbytes(50_000)))
            collect(database, upload_hours=0)
        with database.transaction() as transaction:
            transaction.put(("large",), database.store_bytes(LARGE))
        with database.transaction() as transaction:
            transaction.delete(("large",))
        found = database.store_bytes(LARGE)  # an upload that found what it stores
        ROTS[name](tmp_path / "x.svcdb.d" / "collection")
        try:
            with Database(path) as other:
                collect(other, upload_hours=0, wait_seconds=0.2)
        except SvcError:
            pass  # it may refuse; it may not destroy
        try:
            with database.transaction() as transaction:
                transaction.put(("again",), found)
        except SvcError:
            return  # not acknowledged
        entry = database.at().get(("again",))
        assert entry is not None
        assert database.at().read_all(entry) == LARGE
