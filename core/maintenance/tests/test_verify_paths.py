"""A verification names every path of damage, in every version that has it; and damage is stored again."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from repair_material import flip
from svc.database import Database
from svc.database.collection import collect
from svc.errors import CorruptRecord
from svc.hashing import Hash, ObjectKind
from svc.log import RECORD_HEADER_SIZE
from svc_maintenance.verification import Damage, log_pass, verify

NOISE = random.Random(4).randbytes


def put(database: Database, **files: bytes) -> None:
    with database.transaction() as transaction:
        for name, content in files.items():
            transaction.put(tuple(name.split("_")), content)


def damage(database: Database, path: tuple[str, ...]) -> Hash:
    """Flips a byte of a file's only chunk."""
    entry = database.at().get(path)
    damage_object(database, entry.hash)
    return entry.hash


def damage_object(database: Database, hash: Hash) -> None:
    place = database.objects.find(hash)
    flip(database.path, place.offset + RECORD_HEADER_SIZE + place.stored_length // 2)


def held(damages: list[Damage]) -> dict[tuple[str | None, str], list[tuple[int, int, bool]]]:
    return {
        (one.path, ref): [(each.first, each.last, each.is_present) for each in one.held if each.ref == ref]
        for one in damages
        for ref in {each.ref for each in one.held}
    }


def test_all_paths_are_named_with_all_versions_that_have_them(path: Path) -> None:
    with Database(path) as database:
        put(database, a=b"the content" * 9, b=b"other")
        put(database, d_c=b"the content" * 9)
        with database.transaction() as transaction:
            transaction.delete(("a",))
            transaction.copy(("d",), ("e",))
        with database.transaction() as transaction:
            transaction.copy_ref("HEAD", "forks/one")
        put(database, a=b"the content" * 9)
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/first", database.commit(1).root)
        with database.transaction(ref="forks/one") as transaction:
            transaction.delete(("d", "c"))
        damage(database, ("a",))
        report = verify(database)
    assert held(report.damaged) == {
        ("/a", "HEAD"): [(1, 2, False), (5, 7, True)],
        ("/a", "snapshots/first"): [(6, 7, True)],
        ("/d/c", "HEAD"): [(2, 7, True)],
        ("/d/c", "forks/one"): [(4, 6, False)],
        ("/e/c", "HEAD"): [(3, 7, True)],
        ("/e/c", "forks/one"): [(4, 7, True)],
    }
    assert report.is_complete
    assert len(report.damaged_objects) == 1


def test_a_damaged_directory_is_named_wherever_it_is(path: Path) -> None:
    with Database(path) as database:
        put(database, d_a=b"1", d_b=b"2")
        with database.transaction() as transaction:
            transaction.copy(("d",), ("x", "e"))
        node = database.at().get(("d",)).hash
        damage_object(database, node)
        report = verify(database)
    assert held(report.damaged) == {
        ("/d", "HEAD"): [(1, 2, True)],
        ("/x/e", "HEAD"): [(2, 2, True)],
    }
    assert {one.hash for one in report.damaged} == {node.hex()}


def test_a_tree_of_copies_names_as_many_paths_as_are_wanted(path: Path) -> None:
    """Two to the power of 24 paths hold the file."""
    with Database(path) as database:
        put(database, d0_a=NOISE(50), whole=b"whole")
        for number in range(24):
            with database.transaction() as transaction:
                transaction.copy((f"d{number}",), (f"d{number + 1}", "left"))
                transaction.copy((f"d{number}",), (f"d{number + 1}", "right"))
        damage(database, ("d0", "a"))
        report = verify(database, most_paths=1000)
        assert not report.is_complete
        assert 500 <= len(report.damaged) <= 2000
        assert len(report.damaged_objects) == 1


def test_many_commits_that_hold_much_damage_cost_what_changes(path: Path) -> None:
    with Database(path) as database:
        with database.transaction() as transaction:
            for number in range(400):
                transaction.put(("d", f"f{number:03}"), NOISE(60))
        hit = [damage(database, ("d", f"f{number:03}")) for number in range(0, 400, 2)]
        database.drop_caches()
        for number in range(60):
            put(database, other=str(number).encode())
        report = verify(database)
    assert len(report.damaged) == len(hit) == len(report.damaged_objects)
    assert {tuple((one.first, one.last) for one in each.held) for each in report.damaged} == {((1, 61),)}


def test_what_was_found_damaged_is_stored_again_and_read_from_there(path: Path) -> None:
    content = NOISE(5000)
    with Database(path) as database:
        put(database, a=content)
        hash = damage(database, ("a",))
        put(database, b=content)  # nobody knows yet
        with pytest.raises(CorruptRecord):
            database.at().read_all(database.at().get(("a",)))
        assert "database.damaged" in {one.code for one in database.findings()}
        assert not database.has_chunk(hash) or not database.objects.index.contains(hash)
        put(database, c=content)
        version = database.at()
        assert [version.read_all(version.get((name,))) for name in "abc"] == [content] * 3
        assert "database.damaged" not in {one.code for one in database.findings()}
        report = verify(database)
        assert [one.message for one in report.damaged] == [
            "A second copy of an object is damaged; the other one is read."
        ]
    for name in ("index", "head", "tail"):
        one = Path(f"{path}.d", name)
        one.unlink() if one.is_file() else [each.unlink() for each in one.iterdir()]
    with Database(path) as database:  # its index was made anew
        assert database.opening.rebuilt
        version = database.at()
        assert [version.read_all(version.get((name,))) for name in "abc"] == [content] * 3


def test_a_verification_notes_damage_and_takes_back_what_is_whole(path: Path) -> None:
    content = NOISE(300)
    with Database(path) as database:
        put(database, a=content, b=b"whole" * 100)
        hash = damage(database, ("a",))
        whole = database.at().get(("b",)).hash
        database.objects.index.note_damaged([whole])
        assert not verify(database).ok
        assert database.objects.index.damaged(9) == [hash]
        assert database.objects.index.contains(whole)
        assert database.put_chunks({hash: content})
        assert database.at().read_all(database.at().get(("a",))) == content


@pytest.mark.parametrize("damaged", [True, False])
def test_several_processes_find_what_one_finds(
    path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    monkeypatch.setattr(log_pass, "_STRETCH", 1 << 16)
    inner = path.with_name("inner.svcdb")
    with Database(inner) as database:
        put(database, **{f"f{number}": NOISE(700) for number in range(90)})
    with Database(path) as database:
        for number in range(30):
            # Databases within the database: their records begin where those of the log may.
            put(
                database,
                **{f"x{number}": bytes(8 * number) + inner.read_bytes()[:60_000], f"y{number}": NOISE(3000)},
            )
        if damaged:
            for number in range(0, 30, 7):
                damage(database, (f"y{number}",))
            place = database.objects.find(database.at().get(("x3",)).hash)
            flip(path, place.offset + 30)
        log = database.objects.log
        one, several = (
            log_pass.check_log(log, log.tail, lambda _done: None, processes=count) for count in (1, 3)
        )
        assert len(several) > 10
        for read in (
            lambda found: [each for stretch in found for each in stretch.damaged],
            lambda found: [each for stretch in found for each in stretch.regions],
            lambda found: sum(stretch.records for stretch in found),
            lambda found: [(each.offset, each.named) for stretch in found for each in stretch.marks],
        ):
            assert read(one) == read(several)
        assert bool([each for stretch in one for each in stretch.damaged]) == damaged
        assert {each.kind for stretch in one for each in stretch.damaged} <= {ObjectKind.CHUNK}


def test_a_verification_beside_writers_and_collections_finds_nothing(path: Path) -> None:
    with Database(path) as database:
        for number in range(60):
            put(database, same=NOISE(9000), other=str(number).encode() * 30)
        done = threading.Event()

        def disturb() -> None:
            with Database(path) as other:
                while not done.is_set():
                    put(other, same=NOISE(9000))
                    collect(other, upload_hours=0)

        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            for _ in range(12):
                with Database(path, read_only=True) as reader:
                    assert verify(reader).damaged == []
        finally:
            done.set()
            thread.join()
