"""A load that is killed or interrupted leaves whole commits, and the next load finishes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import Database
from svc_files.client import CommitCounts, local_sink
from svc_files.commands.interruption import Interruption
from svc_files.commands.report import TransferReport

Run = Callable[..., Any]

_FILES = 2_000
_COMMIT = 100
_PROGRAM = f"""
import sys
from svc_cli import main
from svc_files.client import local_sink
local_sink.FILES_PER_COMMIT = {_COMMIT}
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many") / "tree"
    for directory in range(20):
        below = root / f"d{directory:02}"
        below.mkdir(parents=True)
        for index in range(_FILES // 20):
            (below / f"f{index}").write_bytes(b"%d-%d " % (directory, index) * 40)
    return root


def _sound_files(many: Path, database: Path) -> int:
    """Reads every file that the database has; returns how many there are."""
    count = 0
    with Database(database) as opened:
        at = opened.at()
        for path, entry in at.walk((), files_only=True):
            assert at.read_all(entry) == many.joinpath(*path).read_bytes()
            count += 1
    return count


def _finish(run: Run, many: Path, database: Path) -> None:
    report = run("load", many, "-D", database, "--keep-times", "--json").json
    assert report["files"] + report["unchanged_files"] == _FILES
    assert _sound_files(many, database) == _FILES
    run("verify", "-D", database)


@pytest.mark.parametrize("commits", [1, 7])
def test_killed_in_the_middle(run: Run, many: Path, tmp_path: Path, commits: int) -> None:
    database = tmp_path / "x.svcdb"
    words = [sys.executable, "-c", _PROGRAM, "load", str(many), "-D", str(database), "--keep-times"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not database.exists() or database.stat().st_size < commits * 40_000):
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert _sound_files(many, database) % _COMMIT == 0
    _finish(run, many, database)


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that ends a program, also where whoever began the tests has it ignored (``nohup``, ``&``)."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_an_interrupted_load_says_how_far_it_came(
    run: Run, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(local_sink, "FILES_PER_COMMIT", _COMMIT)
    committed = TransferReport.committed

    def interrupt_in_the_middle(report: TransferReport, version: str | None, counts: CommitCounts) -> None:
        committed(report, version, counts)
        if report.files == 5 * _COMMIT:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(TransferReport, "committed", interrupt_in_the_middle)
    database = tmp_path / "x.svcdb"
    report = run("load", many, "-D", database, "--keep-times", "--json", check=130).json
    assert report["interrupted"] is True
    assert 5 * _COMMIT <= report["files"] < _FILES
    assert report["files"] == _sound_files(many, database)
    monkeypatch.undo()
    _finish(run, many, database)


def test_a_program_that_is_to_outlive_its_terminal_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            interruption.check()
    finally:
        signal.signal(signal.SIGHUP, before)
