"""What an import does to a database: versions that can be read and kept, HEAD only when it is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc.errors import Conflict, NotFound, RefusedFile
from svc.plugin import Database, files_with_records
from svc_backup.chains import ordered
from svc_backup.format import IncomingFile, plan_export, plan_patch
from svc_backup.importing import ImportOptions, import_incoming
from svc_backup.promoting import promote_version
from svc_maintenance.verification import verify
from svc_testing import Fault, inject
from svc_testing.old_records import make_record_old


def test_head_stays_where_it_is_and_the_version_can_be_read(source, target: Database, take_in) -> None:
    with target.transaction() as transaction:
        transaction.put(("mine",), b"mine")
    before = target.head()
    result = take_in(target, source.export())
    assert not result.head_promoted
    assert target.head().root == before.root
    version = target.at(result.version)
    assert version.read_all(version.get(("empty",))) == b""
    assert b"".join(version.read(version.get(("large.bin",)))) == b"".join(
        source.database.at(source.first).read(source.database.at(source.first).get(("large.bin",)))
    )
    assert dict(target.refs("imports")) == {f"imports/{result.version.hex()}": result.version}
    assert verify(target).ok


def test_an_imported_version_is_still_known_after_a_restart(source, tmp_path: Path, take_in) -> None:
    with Database(tmp_path / "copy.svcdb") as copy:
        take_in(copy, source.export())
    with Database(tmp_path / "copy.svcdb") as copy:
        assert copy.at(source.first).get(("new",)) is None
        promote_version(copy, source.first)
        assert copy.head().root == source.first
        assert list(copy.refs("imports")) == [], "HEAD keeps it now"


def test_promoted_it_is_head(source, target: Database, take_in) -> None:
    result = take_in(target, source.export(), promote=True)
    assert result.head_promoted
    assert target.head().root == source.first
    assert list(target.refs("imports")) == []
    assert target.totals().files == 93


def test_a_report_counts_what_came(source, target: Database, take_in) -> None:
    with plan_export(source.database, source.first) as outgoing:
        counts = outgoing.counts
    result = take_in(target, source.export(), promote=True)
    assert result.kind == "export"
    assert (result.files, result.directories, result.chunks) == (93, 5, counts.chunks)
    assert result.entries == result.new_entries
    again = take_in(target, source.export())
    assert (again.entries, again.new_entries) == (result.entries, 0)
    with plan_patch(source.database, source.first, source.second) as outgoing:
        counts = outgoing.counts
    patched = take_in(target, source.patch())
    assert patched.kind == "patch"
    assert patched.base == source.first
    assert (patched.files, patched.deletions) == (4, 3)
    assert (patched.chunks, patched.directories) == (counts.chunks, counts.directories)


def test_files_with_records_of_version_0_come_along_as_they_are(source, target: Database, take_in) -> None:
    content = os.urandom(300_000)
    with source.database.transaction() as transaction:
        transaction.put(("old",), content)
    make_record_old(source.database, ("old",))
    head = source.database.head().root
    take_in(target, source.export(head), promote=True)
    entry = target.at().get(("old",))
    assert entry is not None
    assert target.at().read_all(entry) == content
    assert [one.version for one in files_with_records(target, ("old",))] == [0]
    # Where the chunks are there already, the content is looked at all the same.
    result = take_in(target, source.export(head))
    assert result.new_entries == 0
    assert verify(target).ok


def test_equal_content_is_not_stored_again(source, target: Database, take_in) -> None:
    take_in(target, source.export(), promote=True)
    size = target.path.stat().st_size
    take_in(target, source.export(source.second), promote=True)
    assert target.path.stat().st_size - size < 100_000


def test_a_patch_for_another_version_is_refused_and_both_are_named(source, target: Database, take_in) -> None:
    before = target.head()
    with pytest.raises(Conflict) as caught:
        take_in(target, source.patch())
    assert source.first.hex() in caught.value.message
    assert before.root.hex() in caught.value.message
    assert "--force" in caught.value.message
    assert target.head() == before


def test_force_applies_a_patch_to_a_database_that_has_gone_on(source, target: Database, take_in) -> None:
    take_in(target, source.export(), promote=True)
    with target.transaction() as transaction:
        transaction.put(("mine",), b"mine")
    result = take_in(target, source.patch(), force=True, promote=True)
    assert result.head_promoted
    assert target.head().root == source.second


def test_force_does_not_conjure_what_is_missing(source, target: Database, take_in) -> None:
    before = target.path.read_bytes()
    with pytest.raises(RefusedFile, match="neither the file nor the database"):
        take_in(target, source.patch(), force=True)
    assert target.path.read_bytes() == before


def test_a_patch_whose_base_is_unknown_may_still_be_whole(source, target: Database, take_in) -> None:
    """The base is another version with the same objects: the database cannot check what the patch states."""
    with source.database.transaction() as transaction:
        transaction.delete(("new",))
    between = source.database.head().root
    take_in(target, source.export(source.second), promote=True)
    result = take_in(target, source.patch(between, source.second), force=True, promote=True)
    assert "does not hold the version" in result.warnings[0]
    assert target.head().root == source.second


def test_a_writer_that_comes_between_is_noticed(source, target: Database, take_in, monkeypatch) -> None:
    take_in(target, source.export(), promote=True)
    from svc_backup import importing

    real = importing.apply_incoming

    def apply_late(database: Database, *arguments: object, **options: object) -> object:
        with database.transaction() as transaction:
            transaction.put(("between",), b"x")
        return real(database, *arguments, **options)

    monkeypatch.setattr(importing, "apply_incoming", apply_late)
    with pytest.raises(Conflict, match="--force"):
        take_in(target, source.patch(), promote=True)
    assert target.at().get(("between",)) is not None


def test_an_unknown_version_cannot_be_promoted(target: Database) -> None:
    with pytest.raises(NotFound):
        promote_version(target, bytes(32))


def test_a_file_that_changes_while_it_is_imported_is_refused(
    source, target: Database, tmp_path: Path, monkeypatch
) -> None:
    from svc_backup import importing

    path = tmp_path / "changing"
    data = source.export()
    path.write_bytes(data)
    real = importing.apply_incoming

    def apply_another(*arguments: object, **options: object) -> object:
        path.write_bytes(data[:128] + source.export(source.second)[128:])
        return real(*arguments, **options)

    monkeypatch.setattr(importing, "apply_incoming", apply_another)
    before = target.head()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with IncomingFile(descriptor) as file, pytest.raises(RefusedFile, match=r"changed|cut short|damaged"):
            import_incoming(target, file, ImportOptions(promote=True))
    finally:
        os.close(descriptor)
    assert target.head().root == before.root
    assert verify(target).ok


@pytest.mark.parametrize("call", [1, 2, 3, 5, 9])
def test_a_full_disk_ends_an_import_and_leaves_the_database_as_it_was(
    source, target: Database, take_in, call: int
) -> None:
    from svc.errors import InsufficientStorage

    before = target.head().root
    try:
        with inject(Fault("os.pwritev", call, "ENOSPC")):
            take_in(target, source.export(), promote=True)
    except InsufficientStorage:
        assert target.head().root == before
    assert verify(target).ok
    take_in(target, source.export(), promote=True)
    assert target.head().root == source.first


KILLED = """
import os, signal, sys
from svc.database import Database
from svc_backup.format import IncomingFile
from svc.database import committer
from svc_maintenance.transfer import applying
from svc_backup.importing import ImportOptions, import_incoming
path, file, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
applying._APPEND_BYTES, applying._PART_BYTES = 20_000, 60_000
count = 0
def step():
    global count
    count += 1
    if count == steps:
        os.kill(os.getpid(), signal.SIGKILL)
def counted(function):
    def call(*args, **options):
        step()
        try:
            return function(*args, **options)
        finally:
            step()
    return call
os.pwritev = counted(os.pwritev)
os.fdatasync = counted(os.fdatasync)
database = Database(path)
count = 0
with IncomingFile(os.open(file, os.O_RDONLY)) as incoming:
    import_incoming(database, incoming, ImportOptions(promote=True))
print("done", count)
"""


@pytest.mark.parametrize("steps", [1, 2, 3, 6, 11, 18, 26, 35])
def test_a_kill_at_any_step_leaves_a_clean_database(source, tmp_path: Path, steps: int) -> None:
    path, file = tmp_path / "copy.svcdb", tmp_path / "export.svcdb"
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("mine",), b"mine")
        before = database.head().root
    file.write_bytes(source.export())
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(file), str(steps)], capture_output=True, timeout=60
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr.decode()
    with Database(path) as database:
        expected = {before, source.first} if ended.returncode else {source.first}
        assert database.head().root in expected
        assert verify(database).ok
        descriptor = os.open(file, os.O_RDONLY)
        with IncomingFile(descriptor) as incoming:
            import_incoming(database, incoming, ImportOptions(promote=True))
        os.close(descriptor)
        assert database.head().root == source.first
        assert verify(database).ok
    left = {one.name for one in tmp_path.iterdir() if not one.name.startswith("source")}
    assert left == {"copy.svcdb", "copy.svcdb.d", "export.svcdb"}
    assert not list(tmp_path.glob("copy.svcdb.d/svc-incoming-*"))


def test_a_chain_is_put_into_order(source, tmp_path: Path) -> None:
    with source.database.transaction() as transaction:
        transaction.put(("third",), b"3")
    third = source.database.head().root
    datas = [source.patch(source.second, third), source.export(), source.patch()]
    files, descriptors = [], []
    for number, data in enumerate(datas):
        path = tmp_path / f"file-{number}"
        path.write_bytes(data)
        descriptors.append(os.open(path, os.O_RDONLY))
        files.append(IncomingFile(descriptors[-1], path.name))
    from svc.errors import InvalidInput

    try:
        assert [file.name for file in ordered(files, bytes(32))] == ["file-1", "file-2", "file-0"]
        assert [file.name for file in ordered(files[::2], source.first)] == ["file-2", "file-0"]
        with pytest.raises(Conflict, match="file-0 does not fit"):
            ordered(files[:2], bytes(32))
        with pytest.raises(InvalidInput, match="both exports"):
            ordered([files[1], files[1]], bytes(32))
    finally:
        for file in files:
            file.close()
        for descriptor in descriptors:
            os.close(descriptor)
