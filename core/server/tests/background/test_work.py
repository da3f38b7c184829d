"""What the background process does: views that are current and jobs that run, each for itself."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.database import Database
from svc.errors import PluginError, ServiceUnavailable
from svc.plugins import BackgroundJob, Plugins, disable, enable
from svc_cli.processes.state_file import JobState, ViewState
from svc_server.background import work as work_module
from svc_server.background.failures import LONGEST_WAIT_S, trace_of, wait_after
from svc_server.background.jobs import JobList
from svc_server.background.work import BackgroundWork
from svc_testing import simulate_collection

PLUGIN_ID = "test.background"
Eventually = Callable[..., Any]


@pytest.fixture
def running(database: Database, plugins: Plugins) -> Iterator[BackgroundWork]:
    opened = BackgroundWork(database, plugins, 1)
    opened.start()
    yield opened
    opened.stop()


def view(running: BackgroundWork, name: str) -> ViewState:
    running.look()
    return next(state for state in running.state().views if state.name == name)


def job(running: BackgroundWork, name: str) -> JobState:
    return next(state for state in running.state().jobs if state.name == name)


def test_views_come_to_every_commit_without_being_asked(
    running: BackgroundWork, database: Database, put: Callable[[str], int], eventually: Eventually
) -> None:
    for number in range(3):
        sequence = put(f"file{number}")
        eventually(lambda sequence=sequence: view(running, "test.names").applied == sequence)
    keys = database.view("test.names").read(lambda storage: [key for key, _ in storage.scan()])
    assert keys[:3] == [b"file0", b"file1", b"file2"]


def test_a_view_that_fails_is_told_and_tried_again_while_the_others_go_on(
    running: BackgroundWork, work: Path, put: Callable[[str], int], eventually: Eventually
) -> None:
    eventually(lambda: view(running, "test.fragile").applied)
    (work / "fail-view").touch()
    sequence = put("a")
    failing = eventually(lambda: state if (state := view(running, "test.fragile")).failures >= 2 else None)
    assert failing.applied == sequence - 1
    assert failing.error == "RuntimeError: The view was asked to fail, rt_[redacted]"
    assert failing.failing_since_ms
    assert "test.fragile" in (running.state().last_error or "")
    assert view(running, "test.names").applied == sequence
    (work / "fail-view").unlink()
    healed = eventually(lambda: state if (state := view(running, "test.fragile")).error is None else None)
    assert (healed.applied, healed.failures, healed.failing_since_ms) == (sequence, 0, None)


def done(database: Database) -> list[str]:
    def read(storage: Any) -> list[str]:
        found = dict(storage.scan(b"done/"))
        assert set(found.values()) <= {PLUGIN_ID.encode()}
        return [key.removeprefix(b"done/").decode() for key in found]

    return database.view("test.working").read(read)


def test_the_work_of_views_is_done_by_itself(
    running: BackgroundWork, database: Database, work: Path, put: Callable[[str], int], eventually: Eventually
) -> None:
    eventually(lambda: done(database) == ["started"])
    put("a")
    view(running, "test.working")
    eventually(lambda: "a" in done(database))
    # Nothing is left; what comes up by itself is found all the same.
    (work / "late-work").touch()
    eventually(lambda: database.view("test.working").read(lambda storage: storage.get(b"late")) == b"")


def test_views_without_work_follow_the_horizon_of_a_collection_by_themselves(
    running: BackgroundWork, database: Database, put: Callable[[str], int], eventually: Eventually
) -> None:
    sequence = 0
    for number in range(3):
        sequence = put(f"file{number}")
    eventually(lambda: view(running, "test.names").applied == sequence)
    simulate_collection(database)
    running.look()
    # It knew the paths of all commits; begun with the state at the horizon it knows none of those before.
    eventually(lambda: names(database) == [b"HEAD", b"collection"])
    put("later")
    assert names(database) == [b"HEAD", b"collection", b"later"]


def names(database: Database) -> list[bytes]:
    return database.view("test.names").read(lambda storage: [key for key, _ in storage.scan()])


def test_work_without_end_and_commits_without_end_both_get_on(
    running: BackgroundWork, database: Database, work: Path, put: Callable[[str], int], eventually: Eventually
) -> None:
    eventually(lambda: done(database) == ["started"])
    (work / "endless-work").touch()
    for number in range(200):
        sequence = put(f"{number:03}")
        running.look()
    eventually(lambda: view(running, "test.working").applied == sequence)
    eventually(lambda: len(done(database)) == 201)
    assert view(running, "test.working").failures == 0


def test_work_that_fails_is_told_and_commits_are_applied_meanwhile(
    running: BackgroundWork, database: Database, work: Path, put: Callable[[str], int], eventually: Eventually
) -> None:
    eventually(lambda: done(database) == ["started"])
    (work / "fail-work").touch()
    for number in range(3):
        sequence = put(f"{number}")
        eventually(lambda sequence=sequence: view(running, "test.working").applied == sequence)
        eventually(lambda: view(running, "test.working").failures)
    failing = view(running, "test.working")
    assert failing.error == "RuntimeError: The work was asked to fail"
    assert [item.code for item in running.findings() if item.subject == "test.working"]
    assert done(database) == ["started"]
    (work / "fail-work").unlink()
    healed = eventually(lambda: state if (state := view(running, "test.working")).error is None else None)
    assert healed.applied == sequence
    eventually(lambda: len(done(database)) == 4)


def test_the_process_ends_in_the_middle_of_endless_work(
    running: BackgroundWork, database: Database, work: Path, eventually: Eventually
) -> None:
    (work / "endless-work").touch()
    eventually(lambda: done(database) == ["started"])
    assert running.stop() is True


def test_a_job_runs_again_and_again_also_after_it_failed(
    running: BackgroundWork, work: Path, eventually: Eventually
) -> None:
    eventually(lambda: job(running, "counting").runs >= 3)
    (work / "fail-job").touch()
    failed = eventually(lambda: state if (state := job(running, "counting")).failures else None)
    assert failed.error == "RuntimeError: The job was asked to fail"
    (work / "fail-job").unlink()
    eventually(lambda: not job(running, "counting").failures)
    assert job(running, "hanging").failures == 0


def test_disabling_a_plugin_ends_its_views_and_jobs_and_enabling_brings_them_back(
    running: BackgroundWork, database: Database, plugins: Plugins, work: Path, eventually: Eventually
) -> None:
    disable(database, plugins, PLUGIN_ID)
    running.follow_plugins()
    assert running.state().views == running.state().jobs == ()
    runs = (work / "runs").read_text()
    time.sleep(0.2)
    assert (work / "runs").read_text() == runs
    enable(database, plugins, PLUGIN_ID)
    running.follow_plugins()
    eventually(lambda: view(running, "test.names").applied == database.head().sequence)
    eventually(lambda: job(running, "counting").runs)


def test_a_job_that_does_not_end_is_left_behind(
    running: BackgroundWork, work: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_module, "STOP_SECONDS", 0.2)
    (work / "hang-job").touch()
    eventually((work / "hangs").exists)
    assert job(running, "hanging").running_since_ms
    assert running.stop() is False
    (work / "hang-job").unlink()
    eventually(running.stop)


class Named(BackgroundJob):
    def __init__(self, name: Any = "named", interval_s: Any = 1) -> None:
        self.name = name
        self.interval_s = interval_s

    def run(self, context: Any) -> None:
        return


@pytest.mark.parametrize(
    "wrong",
    [object(), Named, Named(name=""), Named(name=3), Named(interval_s=0), Named(interval_s="1"),
     Named(interval_s=float("nan")), Named(interval_s=True), Named(interval_s=float("inf"))],
    ids=str,
)  # fmt: skip
def test_what_is_no_job_is_refused(wrong: Any) -> None:
    jobs = JobList("test")
    with pytest.raises(PluginError):
        jobs.add(wrong)
    assert jobs.jobs == {}


def test_the_name_of_a_job_is_taken_once() -> None:
    jobs = JobList("test")
    jobs.add(Named())
    with pytest.raises(PluginError, match="taken"):
        jobs.add(Named())


@pytest.mark.parametrize(
    ("error", "is_traced"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), False),
        (OSError(errno.EIO, "Input/output error"), True),
        (ServiceUnavailable("Not now."), False),
        (ValueError("It is wrong."), True),
    ],
)
def test_the_log_has_no_trace_of_what_a_sentence_says(error: Exception, is_traced: bool) -> None:
    assert trace_of(error) is (error if is_traced else None)


def test_waits_grow_and_are_bounded() -> None:
    waits = [wait_after(failures) for failures in range(1, 100)]
    assert waits == sorted(waits)
    assert waits[0] < 1 < waits[3]
    assert waits[-1] == LONGEST_WAIT_S


def test_a_thread_that_the_system_did_not_start_is_not_waited_for() -> None:
    assert work_module._still_alive([threading.Thread(target=print)], 1.0) == []
