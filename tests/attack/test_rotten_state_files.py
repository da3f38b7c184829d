"""What lies beside the log can be made anew: rubbish in it keeps nobody from working."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from svc.database import Database, collect

RUBBISH = (b"\xffrubbish", b"", b"\0" * 50, b"x y z", b"1" * 10_000)


@pytest.mark.parametrize("content", RUBBISH)
def test_rubbish_as_the_time_since_which_pins_are_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.svcdb"
    Database(path).close()
    (tmp_path / "x.svcdb.d" / "pins" / "since").write_bytes(content)
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("a",), b"a")
        database.pin([bytes(32)])
        collect(database)


@pytest.mark.parametrize("name", ["12", str(int(time.time()) // 3600 + 5), "\u0663", "\u00b2"])
@pytest.mark.parametrize("is_directory", [True, False])
def test_strange_names_among_the_pins(tmp_path: Path, name: str, is_directory: bool) -> None:
    path = tmp_path / "x.svcdb"
    Database(path).close()
    place = tmp_path / "x.svcdb.d" / "pins" / name
    if is_directory:
        place.mkdir()
    else:
        place.write_bytes(b"x" * 33)
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("a",), b"a")
        collect(database)
