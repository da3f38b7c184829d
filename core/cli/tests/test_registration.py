"""The list of processes: who is alive is in it, whoever was killed is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from svc_cli.processes.registration import Registration, registered_processes

HOLDER = """
import sys, time
from pathlib import Path
from svc_cli.processes.registration import Registration
registration = Registration(Path(sys.argv[1]), "worker")
print("entered", flush=True)
time.sleep(600)
"""


def test_a_process_is_listed_until_it_leaves(tmp_path: Path) -> None:
    assert registered_processes(tmp_path) == []
    registration = Registration(tmp_path, "standby", keeps_background=True)
    registration.update(kind="background", requests=7)
    (found,) = registered_processes(tmp_path)
    assert (found.pid, found.kind, found.requests, found.keeps_background) == (
        os.getpid(),
        "background",
        7,
        True,
    )
    assert found.started_ms > 0
    registration.close()
    registration.close()
    assert registered_processes(tmp_path) == []
    assert list((tmp_path / "processes").iterdir()) == []


def test_a_killed_process_is_not_listed_and_the_next_clears_its_entry_away(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"entered\n"
        assert [item.pid for item in registered_processes(tmp_path)] == [holder.pid]
        os.kill(holder.pid, signal.SIGKILL)
    assert registered_processes(tmp_path) == []
    assert len(list((tmp_path / "processes").iterdir())) == 1
    registration = Registration(tmp_path, "worker")
    assert [item.pid for item in registered_processes(tmp_path)] == [os.getpid()]
    assert len(list((tmp_path / "processes").iterdir())) == 1
    registration.close()


def test_what_is_no_entry_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "processes").mkdir()
    (tmp_path / "processes" / "1-aa.json").write_text("nonsense")
    (tmp_path / "processes" / "note.txt").write_text("{}")
    assert registered_processes(tmp_path) == []


def test_a_process_works_on_where_it_cannot_enter_itself(tmp_path: Path) -> None:
    (tmp_path / "processes").write_text("in the way")
    registration = Registration(tmp_path, "worker")
    registration.update(requests=1)
    registration.close()
    assert registered_processes(tmp_path) == []
