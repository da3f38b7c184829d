"""What ``svc status`` says where somebody else holds, hides or has removed what it looks at."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from svc.database import Database
from svc.errors import DatabaseBusy
from svc.objects import environments
from svc_cli.processes.diagnosis import storage_findings
from svc_cli.processes.registration import Registration
from svc_cli.program import root


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("SVC_PLUGINS", "")
    path = tmp_path / "x.svcdb"
    with Database(path) as database, database.transaction() as transaction:
        transaction.put(("a",), b"one")
    return path


def status(path):
    done = CliRunner().invoke(root, ["status", "-D", str(path), "--json"])
    return json.loads(done.stdout), done.exit_code


def codes(found):
    return {finding["code"] for finding in found["findings"]}


HOLDER = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("command", ["status", "verify", "info"])
def test_a_process_that_was_stopped_while_it_opened_is_named(path, monkeypatch, command) -> None:
    monkeypatch.setattr(environments, "_LONGEST_WAIT_SECONDS", 0.05)
    index = path.with_name("x.svcdb.d") / "index"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        try:
            os.kill(holder.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
            refused = CliRunner().invoke(root, [command, "-D", str(path)])
            assert isinstance(refused.exception, DatabaseBusy)
            assert f"the process {holder.pid}, which is stopped" in refused.exception.message
            with pytest.raises(DatabaseBusy, match=r"x\.svcdb\.d/index is being opened by"):
                Database(path)
        finally:
            os.kill(holder.pid, signal.SIGCONT)
            holder.stdin.close()
    with Database(path, create=False) as database:
        assert database.opening.rebuilt is False


def test_a_user_who_may_not_write_makes_nothing_worse(path, monkeypatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK and access(name, mode))
    with Database(path, read_only=True) as database:
        entry = Registration(database.state_directory, "worker")
        try:
            found, code = status(path)
            shown = CliRunner().invoke(root, ["status", "-D", str(path)]).output
        finally:
            entry.close()
        assert codes(found) == set()
        assert (found["condition"], code) == ("healthy", 0)
        assert (found["database"]["writable"], found["database"]["may_write"]) == (True, False)
        assert "writable, but not by this user" in shown
        # Who serves it and may not write has a reason to say so.
        assert [finding.code for finding in storage_findings(database)] == ["database.read-only"]


def test_a_file_that_nobody_may_write_is_read_only_for_all(path, monkeypatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK and access(name, mode))
    path.chmod(0o444)
    found, code = status(path)
    assert codes(found) == {"database.read-only"}
    assert (found["database"]["writable"], code) == (False, 9)


def test_who_may_not_look_beside_the_database_does_not_say_that_nobody_serves_it(path, monkeypatch) -> None:
    access = os.access
    hidden = path.with_name("x.svcdb.d")
    with Database(path):
        monkeypatch.setattr(os, "access", lambda name, mode: name != hidden and access(name, mode))
        found, code = status(path)
        shown = CliRunner().invoke(root, ["status", "-D", str(path)]).output
    assert (found["database"]["in_use"], found["database"]["visible"]) == (True, False)
    assert (found["condition"], code) == ("healthy", 0)
    assert "unknown: this user may not see who serves the database" in shown


def test_a_directory_that_was_removed_under_somebody_is_told(path) -> None:
    with Database(path) as serving:
        shutil.rmtree(path.with_name("x.svcdb.d"))
        found, code = status(path)
        assert codes(found) == {"database.displaced"} == {finding.code for finding in serving.findings()}
        assert (found["condition"], code, found["database"]["in_use"]) == ("degraded", 13, True)
        assert "x.svcdb.d, is not there" in found["findings"][0]["message"]
    found, code = status(path)
    assert (codes(found), code, found["database"]["in_use"]) == (set(), 14, False)


def test_a_time_that_no_calendar_has_is_printed_all_the_same() -> None:
    from svc_cli.output import readable_time

    assert readable_time(10_098_000_000_000) == "2289-12-29 00:00:00 UTC"
    assert readable_time(2**63) == f"{2**63} ms"


CLOCK = """
import time
def fails(): raise OverflowError("timestamp too large to convert to C _PyTime_t")
time.time_ns = time.time = fails
from svc_cli import main
main(["info"])
"""


def test_a_clock_that_cannot_be_read_ends_every_command_with_a_sentence() -> None:
    done = subprocess.run([sys.executable, "-c", CLOCK], capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 1)
    assert done.stderr.startswith("svc: The clock of this machine stands behind the year 2261")
    assert "Traceback" not in done.stderr
