"""Views of an earlier boot, of a closed database, and of one that cannot be written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Commit, Database, Version, View, ViewStorage
from svc.errors import DatabaseClosed, ReadOnly
from svc.objects.environments import open_environment


def put(database: Database, name: str, content: bytes = b"x") -> None:
    with database.transaction() as transaction:
        transaction.put((name,), content)


class Names(View):
    """A view of the names that were ever put."""

    name = "test.names"
    format = 1

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put("/".join(change.path).encode(), b"")


def keys(storage: ViewStorage) -> list[bytes]:
    return [key for key, _ in storage.scan()]


@pytest.mark.timeout(10)
def test_a_view_asked_for_a_commit_that_is_not_made_answers_with_the_last(database: Database) -> None:
    put(database, "a")
    reader = database.register_view(Names())
    assert reader.read(keys, minimum=1_000_000) == [b"a"]


def test_a_view_of_an_earlier_boot_is_computed_anew(path: Path, reboot: Callable[[], None]) -> None:
    with Database(path) as database:
        put(database, "a")
        assert database.register_view(Names()).read(keys) == [b"a"]
    (data,) = path.with_name("x.svcdb.d").glob("views/test.names-*/data.mdb")
    os.truncate(data, 2 * 4096)
    reboot()
    with Database(path) as database:
        assert database.register_view(Names()).read(keys) == [b"a"]


def test_a_view_is_not_opened_again_behind_the_close(path: Path) -> None:
    with Database(path) as database:
        put(database, "a")
        reader = database.register_view(Names())
        reader.read(keys)
    with pytest.raises(DatabaseClosed):
        reader.read(keys, minimum=1)


def test_views_can_be_read_where_nothing_can_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(path) as database:
        put(database, "a")

    def refuse(directory: Path, *arguments: object, **more: object) -> object:
        if directory.is_relative_to(path.parent):
            raise ReadOnly("The directory cannot be written.")
        return open_environment(directory, *arguments, **more)  # type: ignore[arg-type]

    with Database(path, read_only=True) as database:
        monkeypatch.setattr("svc.database.view_environment.open_environment", refuse)
        assert database.register_view(Names()).read(keys) == [b"a"]
    with Database(path) as database, pytest.raises(ReadOnly):
        database.register_view(Names()).read(keys)
