"""What is said of the background process: nothing while all is well, and why it is wrong else."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.database import Database
from svc.log import locate
from svc_cli.processes.election import Candidate
from svc_cli.processes.state_file import BackgroundState, StateFile, read_report
from svc_cli.processes.watch import CRASHES, MISSING_SECONDS, background_findings

LONG_AGO_MS = 1_000_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Database(tmp_path / "x.svcdb").close()
    return tmp_path / "x.svcdb"


@pytest.fixture
def codes(path: Path) -> Callable[..., list[str]]:
    def look(since_ms: int | None) -> list[str]:
        return [finding.code for finding in background_findings(locate(path), (), expected_since_ms=since_ms)]

    return look


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_one_that_is_missing_counts_after_a_while_and_where_it_is_expected(
    codes: Callable[..., list[str]],
) -> None:
    assert codes(now_ms()) == []
    assert codes(now_ms() - round(MISSING_SECONDS * 1000) - 1000) == ["background.missing"]
    assert codes(None) == []


def test_its_heartbeat_is_what_counts(path: Path, codes: Callable[..., list[str]]) -> None:
    file = StateFile(path.with_name("x.svcdb.d"))
    with Candidate(path) as candidate:
        assert candidate.acquire()
        assert codes(LONG_AGO_MS) == ["background.silent"]
        file.beat(BackgroundState(1, 1))
        assert codes(LONG_AGO_MS) == []
        os.utime(path.with_name("x.svcdb.d") / "background.json", (1, 1))
        assert codes(LONG_AGO_MS) == ["background.silent"]
    assert codes(LONG_AGO_MS) == ["background.missing"]


def test_one_that_ends_soon_after_each_start_is_told_of_at_once(
    path: Path, codes: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = path.with_name("x.svcdb.d")
    file = StateFile(directory)
    file.beat(BackgroundState(1, now_ms()))
    for _ in range(CRASHES):
        assert codes(now_ms()) == []
        file = StateFile(directory)
        file.beat(BackgroundState(1, now_ms()))
    assert codes(now_ms()) == ["background.crashing"]
    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began + 61)
    file.beat(BackgroundState(1, now_ms()))
    assert codes(now_ms()) == []
    file.remove()
    StateFile(directory).beat(BackgroundState(1, now_ms()))
    report = read_report(directory)
    assert report is not None
    assert report.state.crashes == 0


def test_a_server_that_is_killed_with_its_processes_says_nothing_of_them(
    path: Path, codes: Callable[..., list[str]]
) -> None:
    directory = path.with_name("x.svcdb.d")
    for _ in range(CRASHES + 1):
        with subprocess.Popen(["sleep", "60"]) as server:
            StateFile(directory, server.pid).beat(BackgroundState(1, now_ms()))
            assert codes(now_ms()) == []
            server.kill()
    for _ in range(CRASHES + 1):
        StateFile(directory, os.getpid()).beat(BackgroundState(1, now_ms()))
    assert codes(now_ms()) == ["background.crashing"]


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
