"""Real processes: candidates that take over from each other, and servers that keep one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.database import Database
from svc.plugins import Plugins, enable
from svc_cli.processes.election import is_elected

SVC = [sys.executable, "-c", "from svc_cli import main; main()"]
Eventually = Callable[..., Any]
Told = Callable[[], dict[str, Any]]
Background = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def background(environment: dict[str, str], work: Path) -> Iterator[Background]:
    """Starts ``svc background``; what still runs is killed at the end."""
    running: list[subprocess.Popen[bytes]] = []

    def start_background() -> subprocess.Popen[bytes]:
        log = (work / f"background-{len(running)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [*SVC, "background", "-D", "x.svcdb"], cwd=work, env=environment, stderr=log
            )
        running.append(process)
        return process

    yield start_background
    for process in running:
        process.kill()
        process.wait(10)


@pytest.fixture
def made(work: Path, plugins: Plugins) -> Path:
    """The database, closed."""
    with Database(work / "x.svcdb") as opened:
        enable(opened, plugins, "test.background")
    return work / "x.svcdb"


def pid_of(told: Told) -> Any:
    """The process that has told of views, if one has."""
    found = told()
    return found.get("pid") if found.get("views") else None


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def applied(told: Told, name: str) -> int:
    return next((int(view["applied"]) for view in told().get("views", ()) if view["name"] == name), -1)


def test_the_standby_takes_over_when_the_first_is_killed(
    background: Background, made: Path, told: Told, eventually: Eventually
) -> None:
    first = background()
    eventually(lambda: pid_of(told) == first.pid)
    second = background()
    eventually(lambda: f'"pid":{second.pid},"kind":"standby"' in entries(made))
    first.kill()
    eventually(lambda: pid_of(told) == second.pid)
    with Database(made) as database, database.transaction() as transaction:
        transaction.put(("a",), b"a", content_type="text/plain")
    eventually(lambda: applied(told, "test.names") == 2)
    runs = {int(line) for line in (made.parent / "runs").read_text().split()}
    assert runs == {first.pid, second.pid}


def entries(database: Path) -> str:
    found = ""
    for file in (database.parent / "x.svcdb.d" / "processes").glob("*.json"):
        found += file.read_text()
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order_when_it_is_told_to(
    background: Background, made: Path, told: Told, eventually: Eventually, number: signal.Signals
) -> None:
    process = background()
    eventually(lambda: pid_of(told) == process.pid)
    process.send_signal(number)
    assert process.wait(20) == 0
    assert told() == {}
    assert not is_elected(made)
    assert entries(made) == ""


def test_it_ends_soon_also_while_a_job_hangs(
    background: Background, made: Path, told: Told, eventually: Eventually
) -> None:
    (made.parent / "hang-job").touch()
    process = background()
    eventually((made.parent / "hangs").exists)
    eventually(lambda: any(job["running_since_ms"] for job in told().get("jobs", ())))
    process.terminate()
    began = time.monotonic()
    assert process.wait(20) == 0
    assert time.monotonic() - began < 3
    assert "svc-job-hanging did not end" in (made.parent / "background-0.log").read_text()


def test_without_a_database_it_says_so(work: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*SVC, "background", "-D", "x.svcdb"], cwd=work, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 3
    assert b"There is no database x.svcdb." in done.stderr


def test_a_server_keeps_one_and_starts_another_when_it_is_killed(
    start: Callable[..., Any], made: Path, told: Told, eventually: Eventually
) -> None:
    server = start("-D", "x.svcdb", "--workers", "2")
    first = eventually(lambda: pid_of(told))
    os.kill(first, signal.SIGKILL)
    second = eventually(lambda: pid if (pid := pid_of(told)) != first else None)
    assert alive(second)
    assert json.loads(server.get("/system/health")[1])["status"] == "healthy"
    assert server.stop() == 0
    assert not alive(second)
    assert not is_elected(made)


def test_it_imports_nothing_of_what_answers_requests(
    start: Callable[..., Any], made: Path, told: Told, eventually: Eventually
) -> None:
    start("-D", "x.svcdb")
    pid = eventually(lambda: pid_of(told))
    asked = {int(path.name.rpartition("-")[2]) for path in made.parent.glob("routes-of-*")}
    assert asked and pid not in asked


def test_a_plugin_whose_routes_fail_is_out_of_use_here_too(
    start: Callable[..., Any], made: Path, told: Told, eventually: Eventually
) -> None:
    (made.parent / "fail-routes").touch()
    server = start("-D", "x.svcdb")
    eventually(lambda: told().get("pid"))
    assert json.loads(server.get("/system/health")[1])["status"] == "degraded"
    assert applied(told, "test.names") == -1
    assert not (made.parent / "runs").exists()


def test_it_does_not_outlive_a_server_that_is_killed(
    start: Callable[..., Any], made: Path, told: Told, eventually: Eventually
) -> None:
    server = start("-D", "x.svcdb")
    pid = eventually(lambda: pid_of(told))
    server.process.send_signal(signal.SIGKILL)
    eventually(lambda: not alive(pid))


def test_a_reload_gives_it_the_new_settings(
    start: Callable[..., Any], made: Path, told: Told, eventually: Eventually
) -> None:
    server = start("-D", "x.svcdb")
    first = eventually(lambda: pid_of(told))
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: pid_of(told) not in (None, first))
    assert "The background process ended" not in server.log.read_text()
    assert server.stop() == 0


def test_a_server_can_do_without(start: Callable[..., Any], made: Path, told: Told) -> None:
    server = start("-D", "x.svcdb", "--background", "false")
    time.sleep(1.5)
    assert server.get("/system/health")[0] == 200
    assert not is_elected(made)
    assert server.stop() == 0


@pytest.mark.parametrize("worker_class", ["gevent", "gthread"])
def test_the_workers_of_a_gunicorn_of_ones_own_keep_one_together(
    start: Callable[..., Any], made: Path, told: Told, eventually: Eventually, worker_class: str
) -> None:
    server = start(gunicorn=["-k", worker_class, "-w", "2", 'svc_server:create_app("x.svcdb")'])
    for _ in range(6):
        server.get("/system/health")
    first = eventually(lambda: pid_of(told))
    os.kill(first, signal.SIGKILL)
    second = eventually(lambda: pid if (pid := pid_of(told)) not in (None, first) else None)
    assert server.stop() == 0
    eventually(lambda: not alive(second))


def test_health_tells_of_a_view_that_fails_and_not_why(
    start: Callable[..., Any], made: Path, told: Told, eventually: Eventually
) -> None:
    server = start("-D", "x.svcdb")
    eventually(lambda: pid_of(told))
    (made.parent / "fail-view").touch()
    with Database(made) as database, database.transaction() as transaction:
        transaction.put(("a",), b"a", content_type="text/plain")

    def health() -> Any:
        return json.loads(server.get("/system/health")[1])

    found = eventually(lambda: answer if (answer := health())["status"] == "degraded" else None)
    (finding,) = found["findings"]
    assert (finding["code"], finding["source"]) == ("view.failing", "test.background")
    assert finding["message"] == "A view of the plugin 'test.background' fails."
    assert "asked to fail" not in str(found)
    assert "test.fragile" not in str(found)
    (made.parent / "fail-view").unlink()
    eventually(lambda: health()["status"] == "healthy")
    assert server.stop() == 0
