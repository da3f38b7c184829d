"""A damaged record of a commit is told from the verification that found it on, until it is repaired."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from repair_material import Made, flip, make, records_of
from svc.database import EMPTY_ROOT, Commit, Database, Version, View, ViewStorage, views
from svc.hashing import HASH_SIZE, ObjectKind
from svc_cli import main
from svc_maintenance.repair import FileSource, repair
from svc_maintenance.verification import is_whole_again, verify


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A database with two damaged records of commits, the payload of one and the header of the other."""
    made = make(tmp_path)
    commits = records_of(made.path, ObjectKind.COMMIT)
    flip(made.path, *range(commits[4].offset + 100, commits[4].offset + 150))
    flip(made.path, *range(commits[7].offset, commits[7].offset + 150))
    return made


def told(database: Database) -> list[str]:
    return [one.message for one in database.findings() if one.code == "database.damaged_commits"]


def test_damaged_commits_are_a_finding_of_every_opening(made: Made) -> None:
    with Database(made.path) as database, Database(made.path, read_only=True) as other:
        assert told(other) == []
        assert verify(database).damaged_commits == [5, 8]
        for opened in (database, other):
            (message,) = told(opened)
            assert "commits 5, 8" in message
        assert not is_whole_again(database, [], [], [5])
        assert is_whole_again(database, [], [], [4])
    with Database(made.path) as database:
        assert told(database)


def test_who_cannot_write_the_database_tells_them_too(made: Made) -> None:
    with Database(made.path, read_only=True) as database:
        assert verify(database).damaged_commits == [5, 8]
        assert told(database)


@pytest.mark.parametrize("backup", [True, False])
def test_after_a_repair_nothing_is_told(made: Made, backup: bool) -> None:
    with Database(made.path) as database:
        verify(database)
    sources = [FileSource(made.backup)] if backup else []
    report = repair(made.path, sources)
    for source in sources:
        source.close()
    assert report.lost_commits == ([] if backup else [5, 8])
    with Database(made.path) as database:
        assert told(database) == []
        assert is_whole_again(database, [], [], [5, 8])
        assert verify(database).damaged_commits == []
        assert told(database) == []


class Trees(View):
    """Keeps the trees that it was shown, commit by commit."""

    name = "test.trees"
    format = 1

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        storage.put(b"%08d" % commit.sequence, before.root + after.root)


@pytest.mark.parametrize("applied", [0, 4, 6])
def test_views_miss_nothing_of_commits_that_a_repair_has_given_up(
    made: Made, applied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "COMMITS_PER_TRANSACTION", 1)
    repair(made.path, [])
    with Database(made.path) as database:
        reader = database.register_view(Trees())
        reader.catch_up(applied)
        assert reader.applied == applied
    with Database(made.path) as database:
        shown = database.register_view(Trees()).read(lambda storage: list(storage.scan()))
        assert [int(key) for key, _ in shown] == [1, 2, 3, 4, 6, 7, *range(9, database.head().sequence + 1)]
        known = EMPTY_ROOT
        for _, value in shown:
            before, after = value[:HASH_SIZE], value[HASH_SIZE:]
            assert before == known
            known = after
        assert known == database.head().root


def test_a_verification_takes_back_what_is_whole_again(made: Made) -> None:
    with Database(made.path) as database:
        verify(database)
        assert told(database)
        shutil.copyfile(made.backup, made.path)  # the same file, its bytes as they were
        assert verify(database).ok
        assert told(database) == []


def test_status_says_it_at_the_shell(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SVC_PLUGINS", "")
    for command, code in (("status", 14), ("verify", 7), ("status", 13)):
        with pytest.raises(SystemExit) as caught:
            main((command, "-D", str(made.path)))
        assert caught.value.code == code
    assert "of commits 5, 8" in capsys.readouterr().out
