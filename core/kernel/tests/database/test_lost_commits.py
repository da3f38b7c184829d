"""A commit that was durable is not in the file: nobody writes over that, and whoever looks is told."""

from __future__ import annotations

import logging
import os
import shutil
import struct
from pathlib import Path

import pytest

from crash.boots import another_boot
from svc.database import Database
from svc.database.state import SharedState
from svc.errors import CorruptRecord, DatabaseLatched, ServiceUnavailable, TruncatedFile
from svc_maintenance.verification import verify
from svc_testing.faults import Fault, inject


def put(path: Path, *names: str) -> None:
    with Database(path) as database:
        for name in names:
            with database.transaction() as transaction:
                transaction.put((name,), name.encode() * 9)


def names(database: Database) -> list[str]:
    return [name for name, _ in database.at().entries(())]


def commit_end(path: Path) -> int:
    with Database(path, read_only=True) as database:
        return database.head().commit_end


def flip(path: Path, offset: int) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 16]))


def codes(database: Database) -> list[str]:
    return [one.code for one in database.findings()]


def check_refused(path: Path, error: type[CorruptRecord], left: list[str], match: str) -> None:
    """Writing is refused and changes nothing; reading shows what is left, and says that it is not all."""
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(error, match=match) as caught:
            Database(path)
        assert type(caught.value) is error
        assert "move x.svcdb.d away" in caught.value.message
        assert path.read_bytes() == before
    with Database(path, read_only=True) as database:
        assert names(database) == left
        assert "database.lost_commits" in codes(database)
        assert not verify(database).ok
    assert path.read_bytes() == before and not list(path.parent.glob("*.cut-*"))


@pytest.mark.parametrize("way", ["cp", "mv"])
@pytest.mark.parametrize("boot", ["the same boot", "another boot"])
def test_an_older_copy_put_back_beside_the_newer_directory_is_refused_until_that_is_moved_away(
    path: Path, way: str, boot: str
) -> None:
    put(path, "a", "b")
    older = path.with_name("older")
    shutil.copy(path, older)
    put(path, "c", "d")
    if way == "cp":
        with open(path, "r+b") as file:
            file.truncate(0)
            file.write(older.read_bytes())
    else:
        os.replace(older, path)
    if boot == "another boot":
        with another_boot():
            check_refused(
                path, TruncatedFile, ["a", "b"], r"ends with commit 2 of 20.* commit 4 of 20.*durable"
            )
    else:
        check_refused(path, TruncatedFile, ["a", "b"], r"ends with commit 2 of 20.* commit 4 of 20.*durable")
    os.rename(f"{path}.d", f"{path}.d.away")
    put(path, "e")
    with Database(path) as database:
        assert names(database) == ["a", "b", "e"]
        assert verify(database).ok and codes(database) == []


@pytest.mark.parametrize("boot", ["the same boot", "another boot"])
def test_a_copy_of_file_and_directory_whose_log_was_cut_to_a_part_is_refused(path: Path, boot: str) -> None:
    original = path.with_name("original.svcdb")
    put(original, *"abcdefghij")
    whole = original.read_bytes()
    shutil.copytree(f"{original}.d", f"{path}.d")
    path.write_bytes(whole[: len(whole) * 6 // 10])
    with another_boot():
        with Database(path, read_only=True) as database:
            left = names(database)
        assert left == list("abcdefghij")[: len(left)]
        check_refused(path, TruncatedFile, left, r"commit 10 of 20.* was durable")


@pytest.mark.parametrize("boot", ["the same boot", "another boot"])
def test_a_flipped_bit_anywhere_in_the_last_commits_record_is_refused_and_never_called_well(
    path: Path, boot: str
) -> None:
    put(path, "a", "b")
    end = commit_end(path)
    with Database(path, read_only=True) as database:
        offset, _ = database.objects.index.commit_place(2)
    for position in range(offset, end - 7, 23):
        flip(path, position)
        if boot == "another boot":
            with another_boot():
                check_refused(
                    path, CorruptRecord, ["a"], r"ends with commit 1 .* commit 2 of 20.* was durable"
                )
        else:
            check_refused(path, CorruptRecord, ["a"], r"ends with commit 1 .* commit 2 of 20.* was durable")
        flip(path, position)
    with Database(path) as database:
        assert names(database) == ["a", "b"] and verify(database).ok


def test_the_index_alone_proves_what_was_durable(path: Path) -> None:
    put(path, "a", "b")
    for cell in ("head", "tail"):
        (path.with_name("x.svcdb.d") / cell).unlink()
    with Database(path, read_only=True) as database:
        offset, _ = database.objects.index.commit_place(2)
    flip(path, offset + 80)
    check_refused(path, CorruptRecord, ["a"], "commit 2 was durable")


def test_a_latched_cell_still_proves_what_was_durable_before(path: Path) -> None:
    put(path, "a", "b")
    with Database(path) as database:
        with inject(Fault("svc.log.LocalFileStorage.sync", 1, "EIO")), pytest.raises(DatabaseLatched):
            put(path, "uncertain")
        offset, _ = database.objects.index.commit_place(2)
    shutil.rmtree(path.with_name("x.svcdb.d") / "index")
    flip(path, offset + 80)
    with pytest.raises(CorruptRecord, match=r"commit 2 .* was durable"):
        Database(path)


def test_the_directory_of_another_database_proves_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody put another database in the place of the first, and left its directory."""
    put(path, "a", "b", "c")
    other = path.with_name("other.svcdb")
    put(other, "z")
    os.replace(other, path)
    with Database(path, read_only=True) as database:
        assert names(database) == ["z"] and codes(database) == []
    with Database(path) as database:
        assert names(database) == ["z"] and codes(database) == []
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_an_opening_that_dies_beside_the_directory_of_another_database_keeps_nobody_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tail is published, and HEAD's cell still is the other database's."""
    put(path, "a", "b", "c")
    other = path.with_name("other.svcdb")
    put(other, "z")
    os.replace(other, path)

    def die(self: SharedState, head: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SharedState, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            Database(path)
    with Database(path) as database:
        assert names(database) == ["z"] and verify(database).ok


def test_an_opening_that_dies_beside_the_cell_of_another_copy_does_not_take_it_for_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer copy was put in place: what lies behind the old cell's commit was acknowledged all the same."""
    put(path, "a")
    newer = path.with_name("newer.svcdb")
    shutil.copy(path, newer)
    with Database(newer) as database:
        with database.transaction() as transaction:
            transaction.put(("b",), b"b" * 9)
        shutil.copy(newer, path.with_name("moved"))
    os.replace(path.with_name("moved"), path)

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("svc.database.opening._agree", die)
        with pytest.raises(KeyboardInterrupt):
            Database(path)
    flip(path, path.stat().st_size - 30)
    size = path.stat().st_size
    with Database(path) as database:
        assert path.stat().st_size == size
        assert codes(database) == ["database.damaged_records"]
        assert not verify(database).ok


# -- from the file alone -----------------------------------------------------------------------------


def alone(path: Path) -> Path:
    """The file copied to a place where nothing lies beside it."""
    copy = path.with_name("copy.svcdb")
    shutil.rmtree(f"{copy}.d", ignore_errors=True)
    shutil.copy(path, copy)
    return copy


def test_the_mark_of_an_orderly_close_makes_a_lost_last_commit_known_from_the_file_alone(path: Path) -> None:
    put(path, "a", "b")
    with Database(path, read_only=True) as database:
        offset, _ = database.objects.index.commit_place(2)
    for position in (offset, offset + 30, offset + 72, offset + 150):
        copy = alone(path)
        flip(copy, position)
        before = copy.read_bytes()
        with pytest.raises(CorruptRecord, match="a clean-end mark proves that another one was durable"):
            Database(copy)
        assert copy.read_bytes() == before
        with Database(copy, read_only=True) as database:
            assert names(database) == ["a"]
            assert codes(database) == ["database.lost_commits"]
            assert not verify(database).ok


def test_rot_in_the_last_batch_before_a_mark_is_named_and_never_cut(path: Path) -> None:
    put(path, "a", "b")
    copy = alone(path)
    flip(copy, copy.read_bytes().index(b"b" * 9) + 4)  # the byte before the content may be a "b" too
    size = copy.stat().st_size
    with Database(copy) as database:
        assert names(database) == ["a", "b"] and database.recovered_bytes == 0
        assert [one.path for one in verify(database).damaged] == ["/b"]
    assert copy.stat().st_size == size


def killed(path: Path) -> Path:
    """A copy as a kill would leave the file: two commits in its last session, and no mark behind them."""
    put(path, "a")
    with Database(path) as database:
        for name in ("b", "c"):
            with database.transaction() as transaction:
                transaction.put((name,), name.encode() * 9)
        return alone(path)


def test_without_a_proof_what_is_cut_is_saved_and_said_until_it_is_moved_away(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = killed(path)
    size = copy.stat().st_size
    flip(copy, size - 30)
    damaged = copy.read_bytes()
    with Database(copy, read_only=True) as database:
        assert codes(database) == ["database.damaged_end"]
        assert not verify(database).ok
    with Database(copy) as database:
        assert names(database) == ["a", "b"]
        (saved,) = copy.parent.glob("copy.svcdb.cut-*")
        assert damaged == copy.read_bytes() + saved.read_bytes()
    for _ in range(2):
        with Database(copy) as database:
            (finding,) = database.findings()
            assert finding.code == "database.cut"
            assert "1 record (1 commit) that is whole in length and damaged in content" in finding.message
            assert str(copy.parent) not in finding.message and copy.name not in finding.message
            assert [one.message for one in verify(database).damaged] == [
                f"{finding.message} {finding.advice}"
            ]
    os.rename(saved, saved.with_name("kept"))
    assert str(saved) in caplog.text
    with Database(copy) as database:
        assert codes(database) == [] and verify(database).ok


def test_a_torn_commit_is_said_to_be_unfinished_and_a_torn_chunk_is_no_finding(path: Path) -> None:
    copy = killed(path)
    whole = copy.read_bytes()
    with open(copy, "r+b") as file:
        file.truncate(len(whole) - 16)
    with Database(copy) as database:
        (finding,) = database.findings()
        assert "of a commit that is unfinished or cut short" in finding.message
    (saved,) = copy.parent.glob("*.cut-*")
    saved.unlink()
    copy = alone(path)
    copy.write_bytes(whole[: whole.index(b"c" * 9) + 4])
    with Database(copy) as database:
        assert names(database) == ["a", "b"] and codes(database) == [] and verify(database).ok
    (saved,) = copy.parent.glob("*.cut-*")
    assert saved.name.endswith(".unfinished")


def test_what_was_never_acknowledged_in_this_boot_is_cut_and_is_no_finding(path: Path) -> None:
    put(path, "a")
    size = path.stat().st_size
    with Database(path) as database:
        with (
            inject(Fault("svc.database.state.SharedState.index_and_publish", 1, "EIO")),
            pytest.raises(ServiceUnavailable, match="read the path"),
            database.transaction() as transaction,
        ):
            transaction.put(("b",), b"b" * 9)
        crashed = path.with_name("crashed")
        shutil.copytree(f"{path}.d", crashed)
    with open(path, "r+b") as file:
        file.seek(size + 80)
        file.write(struct.pack("<Q", 77))
    shutil.rmtree(f"{path}.d")
    os.rename(crashed, f"{path}.d")
    with Database(path) as database:
        assert names(database) == ["a"] and codes(database) == [] and verify(database).ok
    assert [one.name.endswith(".unfinished") for one in path.parent.glob("*.cut-*")] == [True]
