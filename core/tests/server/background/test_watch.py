"""What health says of the background process: nothing while all is well, a sentence without a secret else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.database import Database
from svc.server.background import watch as watch_module
from svc.server.background.election import Candidate
from svc.server.background.state_file import BackgroundState, StateFile, ViewState, read_report
from svc.server.background.watch import BackgroundWatch


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watch_module, "_KEPT_SECONDS", 0.0)
    Database(tmp_path / "x.svcdb").close()
    return tmp_path / "x.svcdb"


def began_long_ago(watch: BackgroundWatch) -> BackgroundWatch:
    watch._began -= watch_module.MISSING_SECONDS + 1
    return watch


def test_one_that_is_missing_counts_after_a_while_and_where_it_is_expected(path: Path) -> None:
    watch = BackgroundWatch(str(path), expected=True)
    assert watch.findings() == {}
    assert began_long_ago(watch).findings() == {"background": "The background process is not running."}
    assert began_long_ago(BackgroundWatch(str(path), expected=False)).findings() == {}


def test_its_heartbeat_is_what_counts(path: Path) -> None:
    watch = began_long_ago(BackgroundWatch(str(path), expected=True))
    file = StateFile(path.with_name("x.svcdb.d"))
    with Candidate(path) as candidate:
        assert candidate.stand()
        assert watch.findings() == {"background": "The background process does not respond."}
        file.beat(BackgroundState(1, 1))
        assert watch.findings() == {}
        os.utime(path.with_name("x.svcdb.d") / "background.json", (1, 1))
        assert watch.findings() == {"background": "The background process does not respond."}
    assert watch.findings() == {"background": "The background process is not running."}


def test_views_that_fail_are_counted_and_not_named(path: Path) -> None:
    watch = BackgroundWatch(str(path), expected=True)
    file = StateFile(path.with_name("x.svcdb.d"))
    failing = ViewState("private.name", "plugin", 1, 1, "a reason", 1)
    with Candidate(path) as candidate:
        assert candidate.stand()
        file.beat(BackgroundState(1, 1, views=(failing, ViewState("well", "plugin", 1))))
        assert watch.findings() == {"views": "A view fails."}
        file.beat(BackgroundState(1, 1, views=(failing, failing)))
        assert watch.findings() == {"views": "2 views fail."}
    # Nobody is elected: what was told last is old.
    assert watch.findings() == {}


def test_the_heartbeat_goes_on_where_nothing_can_be_written(path: Path) -> None:
    directory = path.with_name("x.svcdb.d")
    file = StateFile(directory)
    file.beat(BackgroundState(1, 1))
    os.utime(directory / "background.json", (1, 1))
    (directory / "background.json.new").mkdir()
    file.beat(BackgroundState(1, 2))
    report = read_report(directory)
    assert report is not None
    assert report.state.elected_ms == 1
    assert report.heartbeat_ms > 1_000_000
