"""A database whose file was moved, removed or replaced while it is open: nobody would see what it writes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import ServiceUnavailable, TruncatedFile


def put(database: Database, name: str) -> None:
    with database.transaction() as transaction:
        transaction.put((name,), b"content")


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def remove_what_lies_beside(path: Path) -> None:
    shutil.rmtree(path.with_name(f"{path.name}.d"))


@pytest.mark.parametrize("displace", [move, remove, replace, remove_what_lies_beside])
def test_writes_are_refused_and_it_says_so(tmp_path: Path, displace: Callable[[Path], None]) -> None:
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        put(database, "before")
        assert database.findings() == ()
        displace(path)
        with pytest.raises(ServiceUnavailable, match="moved, removed or replaced"):
            put(database, "lost")
        assert [finding.code for finding in database.findings()] == ["database.displaced"]
        assert database.at().get(("before",)) is not None
        assert database.at().get(("lost",)) is None


def test_a_file_that_is_overwritten_by_an_older_copy(tmp_path: Path) -> None:
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        put(database, "before")
        older = path.read_bytes()
        put(database, "after")
        newer = path.read_bytes()
        path.write_bytes(older)
        assert [finding.code for finding in database.findings()] == ["database.shortened"]
        with pytest.raises(TruncatedFile):
            put(database, "refused")
        path.write_bytes(newer)
        assert database.findings() == ()


def test_a_file_that_is_put_back_takes_writes_again(tmp_path: Path) -> None:
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        put(database, "before")
        move(path)
        with pytest.raises(ServiceUnavailable):
            put(database, "refused")
        path.with_name("elsewhere").rename(path)
        put(database, "after")
        assert database.findings() == ()
    with Database(path, read_only=True) as database:
        assert database.at().get(("after",)) is not None
