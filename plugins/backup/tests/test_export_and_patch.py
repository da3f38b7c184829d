"""What an export and a patch hold, and what comes of them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from svc.errors import AlreadyExists, CorruptRecord, NotFound, UnsupportedFormat
from svc.log import Log
from svc.plugin import Database, EntryKind, ObjectKind
from svc_backup.format import plan_export, plan_patch
from svc_backup.output_files import write_file
from svc_maintenance.verification import verify


def contents(database: Database, root: bytes) -> dict[tuple[str, ...], object]:
    version = database.at(root)
    return {
        path: version.read_all(entry) if entry.kind is EntryKind.FILE else entry.target
        for path, entry in version.walk(files_only=True)
    }


def test_an_export_is_a_database_of_one_commit_with_the_same_root(source, tmp_path: Path) -> None:
    path = tmp_path / "export.svcdb"
    path.write_bytes(source.export())
    with Database(path) as exported:
        assert exported.head().sequence == 1
        assert exported.head().root == source.first
        assert exported.database_id != source.database.database_id
        assert exported.system().root == Database.system(exported).root
        assert list(exported.system().entries(())) == []
        assert contents(exported, source.first) == contents(source.database, source.first)
        assert verify(exported).ok


def test_an_export_states_its_totals(source, tmp_path: Path) -> None:
    path = tmp_path / "export.svcdb"
    with plan_export(source.database, source.first) as outgoing:
        path.write_bytes(b"".join(outgoing.pieces()))
        counts = outgoing.counts
    with Database(path) as exported:
        totals = exported.totals()
        assert (totals.files, totals.symlinks, totals.directories) == (93, 1, 5)
        assert (counts.files, counts.links, counts.directories) == (93, 1, 5)
        assert totals.size == source.database.at(source.first).totals().size
        assert totals.chunks == counts.chunks
        assert totals.chunk_bytes == counts.chunk_bytes


def test_an_export_holds_nothing_that_its_version_does_not_need(source) -> None:
    with source.database.transaction() as transaction:
        transaction.put(("elsewhere",), b"not in the first version")
        transaction.put_system(("secret",), b"not the user's")
    data = source.export()
    assert b"not in the first version" not in data
    assert b"not the user's" not in data


def test_the_stored_records_are_copied_as_they_are(source, tmp_path: Path) -> None:
    path = tmp_path / "export.svcdb"
    path.write_bytes(source.export())
    with Log.open(path, read_only=True) as log:
        for record in log.scan(payloads=True, verify=True):
            if record.kind is ObjectKind.COMMIT:
                continue
            place = source.database.objects.find(record.hash)
            stored = source.database.objects.log.read(place.offset, place.stored_length)
            assert (stored.payload, stored.codec, stored.time_ms) == (
                record.payload,
                record.codec,
                record.time_ms,
            )


def test_no_record_stands_before_what_it_names(source, forge) -> None:
    for data in (source.export(), source.patch()):
        kinds = [piece.kind for piece in forge.of(data).pieces]
        assert kinds == sorted(kinds)


def test_an_export_of_an_empty_database_is_one_too(target: Database, tmp_path: Path) -> None:
    path = tmp_path / "export.svcdb"
    with plan_export(target, target.head().root) as outgoing:
        path.write_bytes(b"".join(outgoing.pieces()))
    with Database(path) as exported:
        assert exported.head().root == target.head().root
        assert exported.head().sequence == 1


def test_an_unknown_version_cannot_be_exported(source) -> None:
    with pytest.raises(NotFound):
        plan_export(source.database, bytes(32))
    with pytest.raises(NotFound):
        plan_patch(source.database, bytes(32), source.second)


def test_a_patch_holds_what_is_new_and_not_more(source, forge) -> None:
    parts = forge.of(source.patch())
    chunks = {piece.content for piece in parts.of_kind(ObjectKind.CHUNK)}
    assert {b"changed", b"new"} <= chunks
    assert b"data" * 3000 not in chunks, "a directory that moved brings no content"
    assert not any(chunk.startswith(b"number") for chunk in chunks)
    assert len(chunks) < 6, "of a large file only the chunks that changed"
    with plan_patch(source.database, source.first, source.second) as outgoing:
        changes = outgoing.counts.changes
    assert (changes.added, changes.modified, changes.deleted) == (2, 2, 3)


def test_a_patch_lists_what_goes(source, forge) -> None:
    from svc_backup.format.layout import Deletions

    (piece,) = forge.of(source.patch()).of_kind(ObjectKind.DELETION)
    assert Deletions.decode(piece.content).paths == ("/deep/er/data", "/link", "/many/file-050.txt")


def test_a_patch_of_many_deletions_lists_them_all(target: Database, tmp_path: Path, take_in, forge) -> None:
    with target.transaction() as transaction:
        for number in range(2500):
            transaction.put(("d", f"{number:05}"), b"x%d" % number)
    base = target.head().root
    with target.transaction() as transaction:
        transaction.delete(("d",), recursive=True)
    with plan_patch(target, base, target.head().root) as outgoing:
        data = b"".join(outgoing.pieces())
        assert len(data) == outgoing.size
    assert len(forge.of(data).of_kind(ObjectKind.DELETION)) == 3
    with Database(tmp_path / "copy.svcdb") as copy:
        with plan_export(target, base) as outgoing:
            take_in(copy, b"".join(outgoing.pieces()), promote=True)
        assert take_in(copy, data, promote=True).deletions == 2500
        assert copy.head().root == target.head().root


def test_a_patch_is_no_database(source, tmp_path: Path) -> None:
    path = tmp_path / "patch.svcdb"
    path.write_bytes(source.patch())
    for read_only in (False, True):
        with pytest.raises(UnsupportedFormat, match=r"is a patch.*svc import"):
            Database(path, read_only=read_only)


def test_a_patch_between_equal_versions_changes_nothing(source, target: Database, take_in) -> None:
    take_in(target, source.export(), promote=True)
    result = take_in(target, source.patch(source.first, source.first), promote=True)
    assert (result.entries, result.files, result.deletions) == (0, 0, 0)
    assert target.head().root == source.first


@pytest.mark.parametrize("backwards", [False, True])
def test_a_patch_leads_from_any_version_to_any_other(source, target: Database, take_in, backwards) -> None:
    base, aim = (source.second, source.first) if backwards else (source.first, source.second)
    take_in(target, source.export(base), promote=True)
    result = take_in(target, source.patch(base, aim), promote=True)
    assert result.head_promoted
    assert target.head().root == aim
    assert contents(target, aim) == contents(source.database, aim)
    assert verify(target).ok


def test_damage_of_the_source_is_told_and_not_copied(source, tmp_path: Path) -> None:
    entry = source.database.at(source.first).get(("empty",))
    assert entry is not None
    chunk = source.database.at(source.first).get(("deep", "er", "data"))
    place = source.database.objects.find(chunk.hash)
    with open(source.database.path, "r+b") as file:
        file.seek(place.offset + 80)
        byte = file.read(1)
        file.seek(place.offset + 80)
        file.write(bytes([byte[0] ^ 1]))
    output = tmp_path / "export.svcdb"
    with plan_export(source.database, source.first) as outgoing, pytest.raises(CorruptRecord):
        write_file(outgoing, output, pause=lambda: None)
    assert not output.exists()


def test_a_file_appears_whole_or_not_at_all(source, tmp_path: Path) -> None:
    output = tmp_path / "out" / "export.svcdb"
    output.parent.mkdir()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with plan_export(source.database, source.first) as outgoing:
        with pytest.raises(KeyboardInterrupt):
            write_file(outgoing, output, pause=interrupt)
        assert os.listdir(output.parent) == []
        write_file(outgoing, output, pause=lambda: None)
        assert os.listdir(output.parent) == ["export.svcdb"]
        assert output.stat().st_mode & 0o077 == 0
        with pytest.raises(AlreadyExists):
            write_file(outgoing, output, pause=lambda: None)


KILLED = """
import os, signal, sys
from pathlib import Path
from svc.database import Database
from svc_backup.format import plan_export
from svc_backup.output_files import write_file
database = Database(sys.argv[1], read_only=True)
with plan_export(database, database.head().root) as outgoing:
    write_file(outgoing, Path(sys.argv[2]), pause=lambda: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_kill_leaves_nothing_of_an_unfinished_file(source, tmp_path: Path) -> None:
    output = tmp_path / "out" / "export.svcdb"
    output.parent.mkdir()
    command = [sys.executable, "-c", KILLED, str(source.database.path), str(output)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    assert os.listdir(output.parent) == []


def test_exports_and_patches_are_consistent_while_others_write(tmp_path: Path, take_in) -> None:
    with Database(tmp_path / "busy.svcdb") as database, Database(tmp_path / "copy.svcdb") as copy:
        stop = threading.Event()

        def write(worker: int) -> None:
            count = 0
            while not stop.is_set():
                count += 1
                content = database.store(io.BytesIO(os.urandom(80_000 + worker)))
                with database.transaction() as transaction:
                    transaction.put((f"w{worker}", f"{count % 20}"), content)
                    transaction.put((f"w{worker}", "count"), b"%d" % count)

        with database.transaction() as transaction:
            transaction.put(("start",), b"start")
        writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for writer in writers:
            writer.start()
        try:
            base = database.head().root
            with plan_export(database, base) as outgoing:
                take_in(copy, b"".join(outgoing.pieces()), promote=True)
            for _ in range(5):
                root = database.head().root
                with plan_patch(database, base, root) as outgoing:
                    take_in(copy, b"".join(outgoing.pieces()), promote=True)
                assert copy.head().root == root
                base = root
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        assert verify(copy).ok
