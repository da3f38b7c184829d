"""Views whose data are damaged on the disk: they say so, and are made anew by themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.database import Commit, Database, Version, View, ViewStorage
from svc.errors import DamagedView, ServiceUnavailable


def put(database: Database, *names: str) -> None:
    with database.transaction() as transaction:
        for name in names:
            transaction.put((name,), b"x")


class Names(View):
    """A view of the names that were ever put."""

    name = "test.names"
    format = 1

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put("/".join(change.path).encode(), b"value of " + change.path[-1].encode())


NAMES = [f"name-{number:05}" for number in range(2_000)]


def values(storage: ViewStorage) -> list[bytes]:
    return [value for _, value in storage.scan()]


def one(storage: ViewStorage) -> bytes | None:
    return storage.get(b"name-00007")


EXPECTED = [b"value of " + name.encode() for name in NAMES]


def made(path: Path) -> Path:
    """Makes a database with the view; returns the view's file."""
    with Database(path) as database:
        put(database, *NAMES)
        assert database.register_view(Names()).read(values) == EXPECTED
    (data,) = path.with_name(f"{path.name}.d").glob("views/test.names-*/data.mdb")
    return data


def flip(data: Path) -> None:
    content = data.read_bytes()
    data.write_bytes(content.replace(b"value of name-00007", b"value of nane-00007"))
    assert data.read_bytes() != content


def zero(data: Path) -> None:
    """All pages but the two that say which state is the last."""
    size = data.stat().st_size
    with open(data, "r+b") as file:
        file.seek(2 * 4096)
        file.write(bytes(size - 2 * 4096))


def cut(data: Path) -> None:
    os.truncate(data, 3 * 4096)


def garble(data: Path) -> None:
    data.write_bytes(b"garbage" * 5_000)


@pytest.mark.parametrize("damage", [flip, zero, cut, garble])
def test_damage_is_told_and_the_view_is_made_anew(
    path: Path, damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(made(path))
    with Database(path) as database:
        reader = database.register_view(Names())
        assert reader.damage() is None
        with pytest.raises(DamagedView) as raised:
            reader.read(values)
        assert raised.value.status == 503
        assert raised.value.details["view"] == "test.names"
        assert reader.read(values) == EXPECTED
        assert reader.damage() is not None
    assert any("damaged" in record.message for record in caplog.records)
    with Database(path) as database:
        reader = database.register_view(Names())
        assert reader.read(values) == EXPECTED
        assert reader.damage() is not None


def test_a_flipped_byte_is_no_answer_when_one_row_is_asked_for(path: Path) -> None:
    flip(made(path))
    with Database(path) as database:
        reader = database.register_view(Names())
        with pytest.raises(DamagedView):
            reader.read(one)
        assert reader.read(one) == b"value of name-00007"


def test_a_view_whose_file_is_removed_while_it_is_open_begins_anew(path: Path) -> None:
    data = made(path)
    with Database(path) as database, Database(path) as other:
        readers = [database.register_view(Names()), other.register_view(Names())]
        assert [reader.read(values) for reader in readers] == [EXPECTED, EXPECTED]
        data.unlink()
        assert [reader.read(values) for reader in readers] == [EXPECTED, EXPECTED]
        put(database, "z")
        assert [reader.read(values)[-1] for reader in readers] == [b"value of z"] * 2


def test_a_view_that_is_damaged_again_and_again_is_left_alone(path: Path) -> None:
    made(path)

    def damaged(storage: ViewStorage) -> None:
        raise DamagedView("It is not what was written.")

    with Database(path) as database:
        reader = database.register_view(Names())
        for _ in range(3):
            with pytest.raises(DamagedView):
                reader.read(damaged)
        with pytest.raises(ServiceUnavailable, match="again and again"):
            reader.read(damaged)
        assert reader.read(values) == EXPECTED
