"""``svc_testing.prepared``: a server that is forked from a prepared process is one like any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_testing.prepared import PreparedProcess, run_to_end, start_svc

SVC = [sys.executable, "-c", "from svc_cli import main; main()"]
IMPORTED_EARLY = """
import sys, threading
from pathlib import Path
import svc_testing.prepared_program as program

for name in program._MASTER:
    __import__(name)
master = set(sys.modules)
program.import_early()
early = [name for name in sys.modules if name not in master and name.startswith("svc")]
print(threading.active_count(), len(list(Path("/proc/self/task").iterdir())))
print("svc_files.responders.files" in early, "svc_tasks.queue" in early)
print([name for name in early if name.rpartition(".")[0] not in {"", *sys.modules}])
print([name for name in early if sys.modules[name] is None])
"""
KEPT = """
import sys, types
from gevent import monkey

monkey.patch_all()
import threading, time
from svc.native_locks import native_lock
import svc_testing.prepared_program as program

kept = {
    "lock": threading.Lock(), "condition": {"of": [threading.Condition()]}, "local": threading.local(),
    "event": threading.Event(), "sleep": time.sleep, "native": native_lock(), "monotonic": time.monotonic,
}
for name, value in kept.items():
    sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[name], name, value)
print(*sorted(program.modules_with_what_is_gevents(kept)))
"""


@pytest.fixture
def prepared(environment: dict[str, str], tmp_path: Path) -> Iterator[Any]:
    """Starts ``svc`` in the prepared process; what still runs is killed at the end."""
    running: list[PreparedProcess] = []
    # The first one of a run of tests is the program itself.
    start_svc(SVC, "--version", env=environment, stdout=subprocess.DEVNULL).wait(60)

    def start(*words: str) -> PreparedProcess:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = start_svc(SVC, *words, env=environment, cwd=tmp_path, **streams)
        assert isinstance(process, PreparedProcess)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait(20)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("start", "--help"),
        ("start", "--no-such-option"),
        ("start", "--port", "x"),
        ("start", "--port", "0", "-D", "none/x.svcdb"),
        ("info", "-D", "none.svcdb", "--json"),
    ],
    ids=" ".join,
)
def test_it_says_what_the_program_says(
    prepared: Any, environment: dict[str, str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    program = subprocess.run([*SVC, *words], env=environment, cwd=tmp_path, capture_output=True, text=True)
    process = prepared(*words)
    said = process.stdout.read(), process.stderr.read()
    assert said == (program.stdout, program.stderr)
    assert process.wait(20) == program.returncode


def test_it_is_a_process_of_its_own(prepared: Any, tmp_path: Path) -> None:
    process = prepared("start", "--port", "0", "--workers", "1")
    assert process.stdout.readline().startswith("svc ready at ")
    assert (tmp_path / "data.svcdb").exists()
    assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
    assert os.readlink(f"/proc/{process.pid}/cwd") == str(tmp_path)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.terminate()
    assert process.wait(20) == process.returncode == 0
    assert not Path(f"/proc/{process.pid}").exists()


def test_its_process_id_is_its_own_until_somebody_waits_for_it(prepared: Any) -> None:
    process = prepared("start", "--port", "0", "--workers", "1")
    assert process.stdout.readline().startswith("svc ready at ")
    os.kill(process.pid, signal.SIGKILL)
    os.killpg(process.pid, signal.SIGKILL)
    assert Path(f"/proc/{process.pid}").exists()
    assert process.wait(20) == process.wait() == -signal.SIGKILL


def test_another_environment_gets_the_program_itself(environment: dict[str, str], tmp_path: Path) -> None:
    for variables in ({**environment, "TZ": "Asia/Tokyo"}, {"PATH": environment["PATH"]}):
        process = start_svc(SVC, "--version", env=variables, cwd=tmp_path, stdout=subprocess.DEVNULL)
        assert isinstance(process, subprocess.Popen)
        assert process.wait(60) == 0


def test_what_is_imported_early_starts_nothing_and_leaves_no_gaps() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED_EARLY], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["1 1", "True True", "[]", "[]"]


def test_modules_that_keep_what_is_gevents_in_a_worker_are_not_imported_early() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["condition", "event", "local", "lock", "sleep"]


def test_a_command_runs_to_its_end_as_a_fork(
    prepared: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    def run(*words: str, stdin: bytes = b"", timeout: float = 60) -> subprocess.CompletedProcess[bytes]:
        return run_to_end(SVC, *words, env=environment, cwd=tmp_path, stdin=stdin, timeout=timeout)

    prepared("--version").wait(60)
    done = run("info", "-D", "none.svcdb")
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"none.svcdb" in done.stderr
    listed = run("plugins", "list", "--json", "-D", "none.svcdb")
    program = subprocess.run(
        [*SVC, *listed.args[len(SVC) :]], env=environment, cwd=tmp_path, capture_output=True
    )
    assert (listed.returncode, listed.stdout, listed.stderr) == (
        program.returncode,
        program.stdout,
        program.stderr,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        run("background", "-D", "x.svcdb", timeout=0.001)
