"""Settings in a file below /.config: the file is the truth, and each change of it a compare-and-swap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest
from msgspec import Struct

from svc.database import ConfigurationList, Database
from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound


class Lamp(Struct, frozen=True):
    id: str
    watts: int = 0


LAMPS = ConfigurationList("lamps.json", "lamp", Lamp, maximum=20)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


def brightest(lamp: Lamp) -> None:
    if lamp.watts > 100:
        raise InvalidInput("A lamp has at most 100 watts.", field="watts")


def store(database: Database, content: bytes) -> None:
    with database.transaction() as changes:
        changes.put(LAMPS.path, content)


def test_settings_are_added_changed_and_removed(database: Database) -> None:
    LAMPS.add(database, Lamp("a"), actor=None)
    LAMPS.add(database, Lamp("b", 5), actor=None)
    with pytest.raises(AlreadyExists, match="lamp 'a' already"):
        LAMPS.add(database, Lamp("a"), actor=None)
    assert LAMPS.replace(database, "a", lambda old, _: Lamp(old.id, 7), actor=None) == Lamp("a", 7)
    assert LAMPS.replace(database, "b", lambda *_: None, actor=None) == Lamp("b", 5)
    with pytest.raises(NotFound, match="no lamp 'b'"):
        LAMPS.replace(database, "b", lambda *_: None, actor=None)
    assert LAMPS.stored(database.at()) == [Lamp("a", 7)]
    assert LAMPS.parse(LAMPS.read(database.at()), brightest) == [Lamp("a", 7)]


def test_changes_at_once_lose_none(database: Database) -> None:
    together = Barrier(8)

    def add(number: int) -> None:
        together.wait()
        LAMPS.add(database, Lamp(str(number)), actor=None)

    threads = [Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lamp.id for lamp in LAMPS.stored(database.at())) == [str(number) for number in range(8)]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"{", "lamps"),
        (b"{}", "lamps"),
        (b'{"lamps": 1}', "lamps"),
        (b'{"lamps": [], "more": 1}', "lamps"),
        (b'{"lamps": [{"id": "a"}, {"id": "b", "watts": "x"}]}', "lamps[1].watts"),
        (b'{"lamps": [{"id": "a"}, {"id": "a"}]}', "lamps[1].id"),
        (b'{"lamps": [{"id": "-"}]}', "lamps[0].id"),
        (b'{"lamps": [{"id": "a", "watts": 101}]}', "lamps[0].watts"),
        (b'{"lamps": [%s]}' % b",".join(b'{"id": "%d"}' % number for number in range(21)), "lamps"),
        (b"\xff", "lamps"),
        (b"[" * 100_000, "lamps"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_and_says_where(content: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        LAMPS.parse(content, brightest)
    assert refused.value.details["field"] == field


def test_what_cannot_be_read_is_left_out_and_never_written_over(database: Database) -> None:
    store(database, b'{"lamps": [{"id": "a"}, 7, {"id": "b", "watts": 101}, {"id": "a", "watts": 3}]}')
    notes: list[str] = []
    assert LAMPS.stored(database.at(), brightest, notes.append) == [Lamp("a")]
    assert [note.partition(" of ")[0] for note in notes] == ["lamp 1", "lamp 2"]
    with pytest.raises(Conflict, match="store a valid file first"):
        LAMPS.add(database, Lamp("c"), actor=None)
    store(database, b"no JSON")
    assert LAMPS.stored(database.at()) == []
    with pytest.raises(Conflict, match="store a valid file first"):
        LAMPS.add(database, Lamp("c"), actor=None)
