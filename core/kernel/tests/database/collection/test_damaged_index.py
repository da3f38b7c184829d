"""A damaged key index loses nothing: a verification names it, and a collection leaves the log alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from svc.database import Database, collect
from svc.errors import CorruptRecord
from svc.hashing import Hash
from svc.objects.key_index import KeyIndex, pack_place, unpack_place
from svc_maintenance.repair import repair
from svc_maintenance.verification import verify

FILES = {(f"d{number % 3}", f"f{number}"): random.Random(number).randbytes(5000) for number in range(30)}
DAMAGED = ("d1", "f7")

Spoil = Callable[[Hash, bytes], tuple[Hash, bytes]]


def another_key(hash: Hash, place: bytes) -> tuple[Hash, bytes]:
    return bytes([hash[0] ^ 1]) + hash[1:], place


def moved(bit: int) -> Spoil:
    def spoil(hash: Hash, place: bytes) -> tuple[Hash, bytes]:
        known = unpack_place(place)
        return hash, pack_place(known.offset ^ (1 << bit), *known[1:])

    return spoil


def another_codec(hash: Hash, place: bytes) -> tuple[Hash, bytes]:
    known = unpack_place(place)
    return hash, pack_place(*known[:-1], known.codec ^ 0x40)


def longer(hash: Hash, place: bytes) -> tuple[Hash, bytes]:
    known = unpack_place(place)
    return hash, pack_place(known.offset, known.stored_length ^ 8, *known[2:])


@pytest.fixture
def spoilt(path: Path, request: pytest.FixtureRequest) -> Path:
    """A database with one wrong entry in its key index, and something that a collection would free."""
    with Database(path) as database:
        with database.transaction() as transaction:
            for at, content in FILES.items():
                transaction.put(at, content)
            transaction.put(("old",), random.Random(99).randbytes(5000))
        with database.transaction() as transaction:
            transaction.delete(("old",))
        hash = database.at().get(DAMAGED).hash
        with database.objects.index._begin(0, True) as transaction:
            place = transaction.pop(hash)
            transaction.put(*request.param(hash, place))
    return path


ENTRIES = {
    "another key": another_key,
    "another offset": moved(3),
    "an offset far behind the end": moved(40),
    "an offset that no file has": moved(63),
    "another codec": another_codec,
    "another length": longer,
}
each_entry = pytest.mark.parametrize("spoilt", ENTRIES.values(), ids=ENTRIES, indirect=True)


def check_all(database: Database) -> None:
    version = database.at()
    for at, content in FILES.items():
        assert version.read_all(version.get(at)) == content


@each_entry
def test_a_verification_names_it_and_a_repair_makes_the_index_anew(spoilt: Path) -> None:
    with Database(spoilt) as database:
        report = verify(database)
    assert [one.path for one in report.damaged] == ["/d1/f7"]
    repair(spoilt)
    with Database(spoilt) as database:
        assert verify(database).ok
        check_all(database)


def test_pages_that_lmdb_refuses_are_named_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise lmdb.CorruptedError("mdb_get: Located page was wrong type")

    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("file",), b"content")
        monkeypatch.setattr(KeyIndex, "locate", refuse)
        report = verify(database)
        monkeypatch.undo()
        assert ["key index is damaged" in one.message for one in report.damaged] == [True]
        assert verify(database).ok


@pytest.mark.parametrize(
    ("spoilt", "is_noticed"),
    [(spoil, spoil not in (another_codec, longer)) for spoil in ENTRIES.values()],
    ids=ENTRIES,
    indirect=["spoilt"],
)
def test_a_collection_destroys_nothing_that_is_needed(spoilt: Path, is_noticed: bool) -> None:
    with Database(spoilt) as database:
        if is_noticed:
            with pytest.raises(CorruptRecord, match="key index is damaged"):
                collect(database, upload_hours=0)
            assert database.objects.index.condemned_count() == 0
        else:  # the record is where the index says
            assert collect(database, upload_hours=0).reclaimed_bytes > 5000
    KeyIndex.destroy(spoilt.with_name(f"{spoilt.name}.d") / "index")
    with Database(spoilt) as database:
        check_all(database)
        assert verify(database).ok
        collect(database, upload_hours=0)
        check_all(database)


KINDS = {"chunks": "f7", "file records": "large", "directories": None}


@pytest.mark.parametrize("name", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("other", ["d0", "d2"])
def test_a_place_of_another_whole_object_is_named(path: Path, name: str | None, other: str) -> None:
    """Whichever of the two is looked at first."""
    with Database(path) as database:
        with database.transaction() as transaction:
            for number, directory in enumerate(("d0", "d1", "d2")):
                transaction.put((directory, "f7"), random.Random(number).randbytes(5000))
                content = database.store_bytes(random.Random(number).randbytes(300_000))
                transaction.put((directory, "large"), content)

        def hash_in(directory: str) -> Hash:
            entry = database.at().get((directory,) if name is None else (directory, name))
            return entry.record or entry.hash

        with database.objects.index._begin(0, True) as transaction:
            transaction.put(hash_in("d1"), transaction.get(hash_in(other)))
        database.objects.cache.clear()
        report = verify(database)
        assert [one.path for one in report.damaged] == ["/d1" if name is None else f"/d1/{name}"]
