"""``svc verify`` with ``--repair`` and ``--from``: what it says, and with which exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from repair_material import flip
from svc.database import Database
from svc.log import RECORD_HEADER_SIZE
from svc_cli import main


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SVC_PLUGINS", "")
    monkeypatch.delenv("SVC_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A database with a file that is damaged, and a copy from before."""
    path = tmp_path / "x.svcdb"
    with Database(path) as database:
        for content in (b"content" * 50, b"other"):
            with database.transaction() as transaction:
                transaction.put(("a", "b"), content)
                transaction.put(("kept",), b"content" * 50)
        place = database.objects.find(database.at().get(("kept",)).hash)
    shutil.copy(path, tmp_path / "backup.svcdb")
    flip(path, *range(place.offset + RECORD_HEADER_SIZE, place.offset + RECORD_HEADER_SIZE + 9))
    return path


def test_all_versions_of_a_damaged_path_are_said(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", "-D", str(damaged)) == 7
    told = capsys.readouterr()
    assert "/a/b A chunk of the file is damaged. (at byte 128 of the log) In commit 1 of HEAD." in told.out
    assert "/kept A chunk of the file is damaged. (at byte 128 of the log) In HEAD (commits 1-2)." in told.out
    assert "2 things are damaged" in told.err
    assert run("verify", "-D", str(damaged), "--json") == 7
    found = json.loads(capsys.readouterr().out)
    assert {one["path"]: one["held"] for one in found["damaged"]} == {
        "/a/b": [{"ref": "HEAD", "first": 1, "last": 1, "is_present": False}],
        "/kept": [{"ref": "HEAD", "first": 1, "last": 2, "is_present": True}],
    }


def test_a_verification_lets_what_is_damaged_be_stored_again(damaged: Path) -> None:
    assert run("verify", "-D", str(damaged)) == 7
    with Database(damaged) as database:
        with database.transaction() as transaction:
            transaction.put(("again",), b"content" * 50)
        assert database.at().read_all(database.at().get(("kept",))) == b"content" * 50


def test_a_repair_from_a_backup_ends_with_0(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", "--repair", "--from", "backup.svcdb", "-D", str(damaged)) == 0
    told = capsys.readouterr().out
    assert "1 records restored as they were, 0 objects fetched, 0 damaged records" in told
    assert "saved beside the database: x.svcdb.repaired-1." in told
    assert "Everything is there." in told
    assert run("verify", "-D", str(damaged)) == 0
    assert "All is well." in capsys.readouterr().out
    assert run("verify", "--repair", "-D", str(damaged), "--json") == 0
    assert not json.loads(capsys.readouterr().out)["changed"]


def test_what_is_lost_is_said_with_7_until_no_version_of_today_needs_it(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("verify", "--repair", "-D", str(damaged)) == 7
    told = capsys.readouterr()
    assert "Lost: /kept A chunk of the file is missing. In HEAD (commits 1-3)." in told.out
    assert "Not everything could be saved" in told.err
    assert run("verify", "-D", str(damaged)) == 7
    told = capsys.readouterr()
    assert "Lost before: /kept" in told.out
    assert "1 thing is lost" in told.err
    assert run("verify", "-D", str(damaged), "--json") == 7
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["needed"]) == (False, 1)
    assert {one["path"] for one in found["lost"]} == {"/a/b", "/kept"}
    assert run("status", "-D", str(damaged)) == 13
    assert "One is /kept in HEAD." in capsys.readouterr().out
    with Database(damaged) as database, database.transaction() as transaction:
        transaction.delete(("kept",))
    assert run("verify", "-D", str(damaged)) == 0
    assert "no version of today needs what was lost" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--from", "backup.svcdb"], 2),
        (["--repair", "--from", "none.svcdb"], 3),
        (["--repair", "-D", "http://127.0.0.1:1"], 2),
        (["--repair", "-D", "memory://x"], 2),
    ],
)
def test_what_does_not_fit_is_refused(damaged: Path, words: list[str], code: int) -> None:
    before = damaged.read_bytes()
    given = words if "-D" in words else [*words, "-D", str(damaged)]
    assert run("verify", *given) == code
    assert damaged.read_bytes() == before


def test_a_database_in_use_is_not_repaired(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Database(damaged):
        assert run("verify", "--repair", "-D", str(damaged)) == 8
    assert "Stop the server" in capsys.readouterr().err
