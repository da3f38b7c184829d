"""Openings that meet another opening, a power cut, or what a dead process left half made."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import CorruptRecord
from svc.log import Log
from svc.objects.key_index import KeyIndex


def put(database: Database, name: str, content: bytes = b"x") -> None:
    with database.transaction() as transaction:
        transaction.put((name,), content)


def names(database: Database) -> list[str]:
    return [name for name, _ in database.at().entries(())]


def test_whoever_opens_while_another_makes_the_index_waits_for_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several workers start at once on a new database."""
    destroy = KeyIndex.destroy
    outcomes: list[object] = []

    def open_second() -> None:
        try:
            with Database(path) as second:
                outcomes.append(second.head().sequence)
        except Exception as error:
            outcomes.append(error)

    thread = threading.Thread(target=open_second)

    def destroy_slowly(directory: Path) -> None:
        destroy(directory)
        if not thread.ident:
            thread.start()
            time.sleep(0.2)

    monkeypatch.setattr(KeyIndex, "destroy", staticmethod(destroy_slowly))
    with Database(path) as first:
        put(first, "f")
        thread.join(10)
    assert outcomes in ([0], [1])


DYING = """
import os, sys
from svc.database import Database
database = Database(sys.argv[1])
for number in range(50):
    with database.transaction() as transaction:
        transaction.put((f"f{number}",), os.urandom(3000))
os.kill(os.getpid(), 9)
"""


REBOOTED = """
import sys
import svc.database.state, svc.objects.environment_notes
for module in (svc.database.state, svc.objects.environment_notes):
    module.boot_id = lambda: b"another boot...."
from svc.database import Database
with Database(sys.argv[1]) as database:
    print(database.head().sequence)
"""


@pytest.mark.parametrize("pages", [2, 3, 5, 9])
def test_an_index_that_a_power_cut_left_too_short_does_not_kill_whoever_opens_it(
    path: Path, pages: int
) -> None:
    dying = subprocess.run([sys.executable, "-c", DYING, str(path)], timeout=60, check=False)
    assert dying.returncode == -signal.SIGKILL
    os.truncate(path.with_name("x.svcdb.d") / "index" / "data.mdb", pages * 4096)
    result = subprocess.run(
        [sys.executable, "-c", REBOOTED, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout) == (0, "50\n"), result.stderr


def test_an_index_that_was_written_after_an_orderly_close_is_not_believed_after_a_power_cut(
    path: Path, tmp_path: Path, reboot: Callable[[], None]
) -> None:
    with Database(path) as database:
        put(database, "a")
    crashed = tmp_path / "crashed.svcdb"
    with Database(path) as database:
        assert not database._opened.rebuilt
        put(database, "b")
        shutil.copy(path, crashed)
        shutil.copytree(f"{path}.d", f"{crashed}.d")
    reboot()
    with Database(crashed) as database:
        assert database._opened.rebuilt
        assert names(database) == ["a", "b"]


def test_the_index_of_another_course_of_the_same_database_is_not_believed(path: Path, tmp_path: Path) -> None:
    """A copy went on by itself, and was put in the place of the original."""
    with Database(path) as database:
        put(database, "common")
    copy = tmp_path / "copy.svcdb"
    shutil.copy(path, copy)
    with Database(path) as database:
        put(database, "here", b"as long")
    with Database(copy) as database:
        put(database, "copy", b"just so")
        put(database, "more", b"still more")
    os.replace(copy, path)
    before = path.read_bytes()
    with pytest.raises(CorruptRecord, match=r"another commit 2 .* was durable"):
        Database(path)
    assert path.read_bytes() == before
    with Database(path, read_only=True) as database:
        assert names(database) == ["common", "copy", "more"]
        assert [one.code for one in database.findings()] == ["database.lost_commits"]
    os.rename(f"{path}.d", f"{path}.d.away")
    with Database(path) as database:
        assert names(database) == ["common", "copy", "more"]
        entry = database.at().get(("copy",))
        assert entry is not None and database.at().read_all(entry) == b"just so"


def test_a_head_of_an_earlier_boot_is_not_shown_to_a_reader(path: Path, reboot: Callable[[], None]) -> None:
    """The cell is never synced: after a power cut it may be any older one."""
    cell = path.with_name("x.svcdb.d") / "head"
    with Database(path) as database:
        put(database, "a")
    old = cell.read_bytes()
    with Database(path) as database:
        put(database, "b")
    cell.write_bytes(old)
    reboot()
    with Database(path, read_only=True) as database:
        assert names(database) == ["a", "b"]


def test_an_index_that_was_left_half_made_is_finished_by_the_next(path: Path, tmp_path: Path) -> None:
    """Whoever made it was killed, and another opening was waiting: it is not alone."""
    index = path.with_name("x.svcdb.d") / "index"
    with Database(path) as database:
        put(database, "a")
    shutil.copytree(index, tmp_path / "older")
    with Database(path) as database:
        put(database, "b")
        put(database, "c")
    shutil.rmtree(index)
    shutil.copytree(tmp_path / "older", index)
    with Log.open(path, read_only=True), Database(path) as database:
        assert not database.objects.log.alone
        assert database.commit(3).root == database.head().root
        put(database, "d")
        assert names(database) == ["a", "b", "c", "d"]


def test_a_close_that_cannot_write_the_index_lets_go_of_the_database_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: KeyIndex) -> None:
        raise OSError("The disk is full.")

    database = Database(path)
    put(database, "a")
    with monkeypatch.context() as patched:
        patched.setattr(KeyIndex, "leave_clean", fail)
        database.close()
    with Database(path) as database:
        assert database._opened.recovery is not None
        assert names(database) == ["a"]


@pytest.mark.parametrize("beside", [True, False], ids=["with its directory", "alone"])
def test_that_nothing_acknowledged_is_lost_is_said_only_where_something_proves_it(
    path: Path, beside: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with Database(path) as database:
        put(database, "f")
    with path.open("ab") as file:
        file.write(b"0123456")
    if not beside:
        shutil.rmtree(f"{path}.d")
    with Database(path) as database:
        assert names(database) == ["f"]
    assert "behind offset" in caplog.text
    assert ("Nothing acknowledged is lost." in caplog.text) is beside
    assert ("cannot be known, since nothing beside it" in caplog.text) is not beside
