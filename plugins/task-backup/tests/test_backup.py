"""What a backup writes, where, what it keeps, and what is left when something goes wrong."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from svc_task_backup.files import BackupFile, BackupFiles, outdated
from svc_task_backup.task import BACKUP
from svc_tasks.api import TaskCancelled, enqueue, list_tasks

from svc.errors import InsufficientStorage, InvalidInput, NotFound, RefusedFile
from svc.plugin import Database
from svc_testing import Fault, inject

from .conftest import Backups, contents, restored  # noqa: TID252


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"backup_dir": ""}, "backup_dir"),
        ({"backup_dir": "a/../../b"}, "backup_dir"),
        ({"backup_dir": "a\0b"}, "backup_dir"),
        ({"backup_dir": "a\nb"}, "backup_dir"),
        ({"backup_dir": 7}, "backup_dir"),
        ({"retention_count": -1}, "retention_count"),
        ({"retention_count": "all"}, "retention_count"),
        ({"snapshot": ""}, "snapshot"),
        ({"chain_length": 0}, "chain_length"),
        ({"compress": True}, "compress"),
        ({"privileged": "yes"}, "privileged"),
        ({"privileged": True, "chain_length": 2}, "privileged"),
    ],
)
def test_wrong_arguments_are_refused_by_name(args: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        BACKUP.normalize(args, None)
    assert refused.value.details["field"] == field


def test_arguments_have_the_defaults_of_the_specification() -> None:
    assert BACKUP.normalize({}, None) == {
        "backup_dir": "./backups/",
        "retention_count": 0,
        "snapshot": None,
        "without_lost": False,
        "chain_length": 1,
        "privileged": False,
    }


# -- what is written ------------------------------------------------------------------------------


def test_a_backup_is_a_database_with_what_head_holds(
    backups: Backups, shop: Database, tmp_path: Path
) -> None:
    context = backups.context()
    result = backups(context)
    assert backups.names() == [result["file"]]
    path = backups.directory / result["file"]
    assert path.name.startswith("shop-20")
    assert result["version"] == shop.head().root.hex()
    assert (result["size"], result["kind"], result["removed"]) == (path.stat().st_size, "export", [])
    assert path.stat().st_mode & 0o777 == 0o600
    assert restored(tmp_path / "other.svcdb", path) == contents(shop)
    with Database(path) as opened:
        assert contents(opened) == contents(shop)
    assert sum(count for count, _ in context.steps) == context.total == 2 * result["size"]


def test_a_privileged_backup_holds_system_data_too(backups: Backups, shop: Database) -> None:
    with shop.transaction() as transaction:
        transaction.put_system(("plugins", "acme.shop"), b"{}")
    system = {}
    for privileged in (False, True):
        result = backups(privileged=privileged)
        with Database(backups.directory / result["file"], read_only=True) as opened:
            assert contents(opened) == contents(shop)
            system[privileged] = opened.system().get(("plugins", "acme.shop"))
    assert system[False] is None
    assert system[True] is not None


def test_a_snapshot_is_what_it_was(backups: Backups, shop: Database, tmp_path: Path) -> None:
    before = contents(shop)
    with shop.transaction() as transaction:
        transaction.set_ref("snapshots/monday", shop.at().root)
    backups.write({"a": b"2"})
    result = backups(snapshot="monday")
    assert restored(tmp_path / "other.svcdb", backups.directory / result["file"]) == before
    with pytest.raises(NotFound):
        backups(snapshot="tuesday")
    assert len(backups.names()) == 1


@pytest.mark.parametrize("text", ["./backups/", "backups", "./backups", ".", "{absolute}"])
def test_the_default_is_the_backup_directory_of_the_server(backups: Backups, text: str) -> None:
    result = backups(backup_dir=text.format(absolute=backups.directory))
    assert result["backup_dir"] == str(backups.directory)


@pytest.mark.parametrize("text", ["./backups/nightly", "nightly", "{absolute}/nightly"])
def test_directories_lie_in_it(backups: Backups, text: str) -> None:
    result = backups(backup_dir=text.format(absolute=backups.directory))
    assert result["backup_dir"] == str(backups.directory / "nightly")
    for made in (backups.directory, backups.directory / "nightly"):
        assert made.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["/tmp", "{absolute}/../elsewhere", "link", "x" * 256])
def test_and_nowhere_else(backups: Backups, tmp_path: Path, text: str) -> None:
    backups.directory.mkdir()
    (backups.directory / "link").symlink_to(tmp_path)
    with pytest.raises(InvalidInput):
        backups(backup_dir=text.format(absolute=backups.directory))
    assert backups.names(tmp_path) == ["data"]


@pytest.mark.parametrize("text", ["/tmp", "{absolute}/../elsewhere", "link", "x" * 256, "file", "file/x"])
def test_such_a_directory_is_refused_before_the_task_waits(
    backups: Backups, tmp_path: Path, text: str
) -> None:
    backups.directory.mkdir()
    (backups.directory / "link").symlink_to(tmp_path)
    (backups.directory / "file").touch()
    with pytest.raises(InvalidInput) as refused:
        enqueue(backups.database, BACKUP, {"backup_dir": text.format(absolute=backups.directory)})
    assert refused.value.details["field"] == "backup_dir"
    assert "directory" in refused.value.message
    assert list_tasks(backups.database) == []
    assert enqueue(backups.database, BACKUP, {"backup_dir": "new/one"}).status == "pending"
    assert backups.names() == ["file", "link"]


def test_the_deployment_names_another_directory(
    backups: Backups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKUP_DIRECTORY", str(tmp_path / "other disk"))
    assert backups()["backup_dir"] == str(tmp_path / "other disk")
    assert backups(backup_dir="a")["backup_dir"] == str(tmp_path / "other disk" / "a")


def test_a_file_in_the_place_of_the_directory_is_an_error(backups: Backups) -> None:
    backups.directory.touch()
    for text in ("./backups/", "x"):
        with pytest.raises(InvalidInput):
            backups(backup_dir=text)


# -- what is kept ---------------------------------------------------------------------------------


def test_so_many_are_kept_and_the_oldest_go(backups: Backups) -> None:
    written = []
    for number in range(5):
        backups.write({"a": str(number).encode()})
        result = backups(retention_count=3)
        written.append(result["file"])
        assert backups.names() == written[-3:]
        assert result["removed"] == written[number - 3 : number - 2] if number >= 3 else True


def test_none_go_without_a_number(backups: Backups) -> None:
    for _ in range(4):
        backups()
    assert len(backups.names()) == 4


def test_files_of_others_stay(backups: Backups, tmp_path: Path) -> None:
    first = backups()["file"]
    others = [
        "mine.svcdb",
        "shop.svcdb",
        first.replace("shop-", "shop2-"),
        first.replace(".svcdb", ".svcdb.bak"),
        first.replace(".svcdb", "-copy.svcdb"),
        first[:-7] + ("1" if first[-7] == "0" else "0") + ".svcdb",
        f"old-{first}",
    ]
    for name in others:
        (backups.directory / name).write_bytes(b"somebody's")
    linked = first.replace("-20", "-19", 1)
    (backups.directory / linked).symlink_to("/etc/hostname")
    (tmp_path / "data2").mkdir()
    with Database(tmp_path / "data2" / "shop.svcdb") as same_name:
        other = Backups(same_name)
        other.directory = backups.directory
        theirs = BackupFiles.of(backups.directory, same_name.path, same_name.database_id)
        path = theirs.named(first[5:24], is_patch=False).path
        path.write_bytes(b"another database's")
    last = backups(retention_count=1)["file"]
    assert set(backups.names()) == {*others, linked, path.name, last}


def test_a_clock_that_is_set_back_costs_no_backup(backups: Backups, monkeypatch: pytest.MonkeyPatch) -> None:
    first = backups()["file"]
    monkeypatch.setattr("svc_task_backup.task.time.time_ns", lambda: 1_000_000_000 * 10**9)
    second = backups(retention_count=1)["file"]
    assert second > first
    assert backups.names() == [second]


def test_names_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    files = BackupFiles(tmp_path, "über/x y", bytes(16))
    first = files.new(1_709_251_199_999, is_patch=False)
    assert first.path.name == "über_x_y-20240229T235959999Z-0000000000000000.svcdb"
    first.path.touch()
    second = files.new(0, is_patch=True)
    assert second.time == "20240301T000000000Z"
    second.path.touch()
    assert files.all() == [first, second]


@pytest.mark.parametrize(
    ("kinds", "count", "gone"),
    [
        ("ffff", 2, 2), ("ffff", 4, 0), ("ffff", 9, 0), ("ffff", 0, 0),
        ("fppfpp", 3, 3), ("fppfpp", 2, 3), ("fppfpp", 1, 3), ("fppfpp", 4, 0), ("fppf", 1, 3), ("ppf", 2, 0),
    ],
)  # fmt: skip
def test_what_a_patch_follows_stays_with_it(kinds: str, count: int, gone: int) -> None:
    files = [BackupFile(str(at), kind == "p", Path(str(at))) for at, kind in enumerate(kinds)]
    assert outdated(files, count) == files[:gone]


# -- chains ---------------------------------------------------------------------------------------


def test_a_chain_is_an_export_and_patches_and_makes_each_version(
    backups: Backups, shop: Database, tmp_path: Path
) -> None:
    results, states = [], []
    for number in range(5):
        backups.write({"a": str(number).encode(), f"new{number}": os.urandom(1000), "gone": b"x"})
        backups.write({"gone": None})
        results.append(backups(chain_length=3))
        states.append(contents(shop))
    assert [result["kind"] for result in results] == ["export", "patch", "patch", "export", "patch"]
    assert results[1]["size"] < results[0]["size"] / 10, "only what changed"
    paths = [backups.directory / result["file"] for result in results]
    assert restored(tmp_path / "first.svcdb", *paths[:3]) == states[2]
    assert restored(tmp_path / "second.svcdb", *paths[3:]) == states[4]
    kept = backups(chain_length=3, retention_count=1)
    assert kept["file"] is None, "nothing has changed since"
    assert backups.names() == [path.name for path in paths[3:]], "what the newest follows stays with it"


def test_a_broken_chain_is_begun_anew(backups: Backups, shop: Database) -> None:
    first = backups(chain_length=9)["file"]
    backups.write({"a": b"2"})
    (backups.directory / first).write_bytes(b"damaged")
    assert backups(chain_length=9)["kind"] == "export"


# -- when something goes wrong --------------------------------------------------------------------


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Lets this process write no file beyond a size, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_gets_full_keeps_the_old_ones_and_gets_no_half_of_the_new(backups: Backups) -> None:
    kept = [backups()["file"], backups()["file"]]
    before = {name: (backups.directory / name).read_bytes() for name in kept}
    context = backups.context(retention_count=1)
    with files_of_at_most(100_000), pytest.raises(InsufficientStorage):
        backups(context)
    assert {name: (backups.directory / name).read_bytes() for name in backups.names()} == before
    # There is room again: the same run goes on.
    result = backups(backups.context(context.checkpoint, retention_count=1))
    assert backups.names() == [result["file"]]


def test_a_file_that_cannot_fit_is_not_begun(backups: Backups, tmp_path: Path) -> None:
    place = backups.directory
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this process may not mount anything")
    try:
        first = backups()["file"]
        with pytest.raises(InsufficientStorage) as refused:
            backups(retention_count=1)
        assert refused.value.details["free"] < refused.value.details["size"]
        assert backups.names() == [first]
        (place / first).unlink()
        assert backups()["kind"] == "export"
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize(("target", "call"), [("os.write", 2), ("os.fsync", 1), ("os.link", 1)])
def test_a_disk_that_fails_leaves_nothing(backups: Backups, target: str, call: int) -> None:
    kept = backups()["file"]
    with inject(Fault(target, call, "EIO")), pytest.raises(Exception, match="cannot be written"):
        backups(retention_count=1)
    assert backups.names() == [kept]


def test_what_the_disk_has_changed_gets_no_name(backups: Backups, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = backups()["file"]
    sync = os.fsync

    def change(descriptor: int) -> None:
        sync(descriptor)
        if os.fstat(descriptor).st_size > 200_000:
            os.pwrite(descriptor, b"\xff", 150_000)

    monkeypatch.setattr(os, "fsync", change)
    with pytest.raises(RefusedFile):
        backups(retention_count=1)
    assert backups.names() == [kept]


def test_one_that_is_cancelled_leaves_nothing(backups: Backups) -> None:
    kept = backups()["file"]
    for step in (1, 2):
        context = backups.context(retention_count=1)

        def end(context: Any = context, step: int = step) -> None:
            if len(context.steps) >= step:
                raise TaskCancelled

        context.on_step = end
        with pytest.raises(TaskCancelled):
            backups(context)
        assert backups.names() == [kept]


def test_a_run_that_was_killed_behind_the_last_step_writes_no_second_file(backups: Backups) -> None:
    context = backups.context(retention_count=1)
    first = backups(context)
    backups.write({"a": b"2"})
    second = backups(backups.context(context.checkpoint, retention_count=1))
    assert second["file"] == first["file"]
    assert second["version"] == first["version"]
    assert backups.names() == [first["file"]]


def test_where_files_have_names_from_the_beginning_what_a_kill_left_goes(
    backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = backups()["file"]
    left = f".{kept}.part-{'0' * 16}"
    others = [f".other-{kept}.part-{'0' * 16}", f"{kept}.part-{'0' * 16}", f".{kept}.part-1"]
    for name in (left, *others):
        (backups.directory / name).touch()
    opened = os.open

    def without_unnamed(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no such files here")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", without_unnamed)
    new = backups()["file"]
    assert set(backups.names()) == {kept, new, *others}
