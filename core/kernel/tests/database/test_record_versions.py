"""Files with records of version 0 are files like all others, and can be given records of the present one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.database import Database, files_with_records
from svc.errors import CorruptRecord, PreconditionFailed
from svc_maintenance.verification import verify
from svc_testing.old_records import make_record_old

LARGE = os.urandom(200_000)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "old.svcdb") as opened:
        with opened.transaction() as transaction:
            for name in ("a", "b", "c"):
                content = LARGE + name.encode()
                transaction.put(("d", name), content, content_type="x/y", created_ms=1_000, updated_ms=2_000)
            transaction.put(("small",), b"small")
            transaction.put_system(("some", "state"), b"state")
        make_record_old(opened, ("d", "a"), ("d", "c"), metadata={"k": [1, "two"]})
        make_record_old(opened, ("some", "state"), system=True)
        yield opened


def versions(database: Database, *, system: bool = False) -> dict[tuple[str, ...], int]:
    return {one.path: one.version for one in files_with_records(database, system=system)}


def renew(database: Database) -> int:
    renewed = 0
    with database.transaction() as transaction:
        for system in (False, True):
            for one in files_with_records(database, system=system):
                renewed += transaction.renew_record(one.path, one.entry, system=system)
    return renewed


def test_records_of_version_0_are_read_as_others_are(database: Database) -> None:
    assert versions(database) == {("d", "a"): 0, ("d", "b"): 1, ("d", "c"): 0}
    assert versions(database, system=True)["some", "state"] == 0
    version = database.at()
    entry = version.get(("d", "c"))
    assert entry is not None
    assert version.read_all(entry) == LARGE + b"c"
    assert b"".join(version.read(entry, 70_000, 10)) == LARGE[70_000:70_010]
    assert sum(length for _, length in version.chunks(entry)) == entry.size
    assert verify(database).ok


def test_renewing_changes_the_record_and_nothing_else(database: Database) -> None:
    before = database.at()
    old = {path: before.get(path) for path in (("d", "a"), ("d", "b"), ("d", "c"))}
    system_entry = database.system().get(("some", "state"))
    assert renew(database) == 3
    assert set(versions(database).values()) == {1}
    assert set(versions(database, system=True).values()) == {1}
    after = database.at()
    for path, entry in old.items():
        assert entry is not None
        new = after.get(path)
        assert new is not None
        fields = {"hash", "size", "created_ms", "updated_ms", "content_type", "kind"}
        assert all(getattr(new, name) == getattr(entry, name) for name in fields)
        assert after.chunks(new) == before.chunks(entry)
        assert new.record is not None
        record = database.objects.read_record(new.record)
        assert record.content_hash == new.hash
        assert record.metadata == ({} if path == ("d", "b") else {"k": [1, "two"]})
    renewed = database.system().get(("some", "state"))
    assert renewed is not None
    assert system_entry is not None
    assert (renewed.created_ms, renewed.updated_ms) == (system_entry.created_ms, system_entry.updated_ms)
    assert database.system().read_all(renewed) == b"state"
    # What was there stays readable, and a second time there is nothing to do.
    assert before.read_all(old["d", "a"]) == LARGE + b"a"  # type: ignore[arg-type]
    assert renew(database) == 0
    assert verify(database).ok


def test_a_file_that_is_changed_meanwhile_is_left_alone(database: Database) -> None:
    entry = database.at().get(("d", "a"))
    assert entry is not None
    with database.transaction() as other:
        other.put(("d", "a"), LARGE + b"a", content_type="x/y")  # the same content, another time
    transaction = database.transaction()
    assert transaction.renew_record(("d", "a"), entry)
    with pytest.raises(PreconditionFailed):
        transaction.commit()


def test_a_record_whose_chunks_are_another_content_is_not_renewed(database: Database) -> None:
    entry = database.at().get(("d", "a"))
    assert entry is not None
    wrong = type(entry)(entry.kind, bytes(32), entry.size, 0, 0, None, entry.record)
    with pytest.raises(CorruptRecord):
        database.transaction().renew_record(("d", "a"), wrong)


def test_only_what_lies_below_a_path_is_looked_at(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("e", "x"), LARGE)
    assert [one.path for one in files_with_records(database, ("e",))] == [("e", "x")]
    assert [one.path for one in files_with_records(database, ("d", "b"))] == [("d", "b")]
    assert [one.path for one in files_with_records(database, after=("d", "b"))] == [("d", "c"), ("e", "x")]
    assert list(files_with_records(database, ("nowhere",))) == []


def test_versions_that_refs_name_are_not_the_systems_own_files(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/one", database.at().root)
    assert {path[0] for path in versions(database, system=True)} == {"some"}
