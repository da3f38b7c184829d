"""``svc status``: who serves, how far views are, and an exit code that a monitor can act on."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from svc.database import Database
from svc.findings import Finding
from svc.plugins import Plugins
from svc_cli.processes.election import Candidate
from svc_cli.processes.registration import Registration
from svc_cli.processes.state_file import BackgroundState, StateFile
from svc_cli.status import ServiceCondition, ServiceStatus, gather_status

OPERATING = Path(__file__).parents[4] / "docs" / "operating.md"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def status(database: Database, plugins: Plugins) -> Callable[[], ServiceStatus]:
    return lambda: gather_status(database, plugins)


@pytest.fixture
def worker(database: Database) -> Any:
    registration = Registration(database.state_directory, "worker")
    yield registration
    registration.close()


def test_where_nothing_runs_it_says_so_and_how_far_views_are(
    status: Callable[[], ServiceStatus], database: Database, put: Callable[[str], int]
) -> None:
    sequence = put("a")
    found = status()
    assert (found.condition, found.exit_code, found.findings) == ("stopped", 14, ())
    assert found.workers == ()
    assert not found.background.running
    assert (found.database.sequence, found.database.version) == (sequence, database.head().root.hex())
    assert found.database.age_ms is not None
    assert 0 < found.database.disk_free <= found.database.disk_total
    assert [(view.name, view.applied, view.behind) for view in found.views] == [
        ("test.names", 0, sequence),
        ("test.fragile", 0, sequence),
        ("test.working", 0, sequence),
    ]
    assert not list(database.state_directory.glob("views/test.names*"))


def test_views_are_measured_also_while_nobody_tells_of_them(
    status: Callable[[], ServiceStatus], database: Database, plugins: Plugins, put: Callable[[str], int]
) -> None:
    put("a")
    reader = database.register_view(plugins.registries.views.values["test.names"])
    reader.catch_up()
    sequence = put("b")
    view = status().views[0]
    assert (view.name, view.applied, view.behind) == ("test.names", sequence - 1, 1)


def test_with_a_worker_and_nothing_wrong_it_is_healthy(
    status: Callable[[], ServiceStatus], worker: Registration
) -> None:
    worker.update(requests=12)
    found = status()
    assert (found.condition, found.exit_code) == ("healthy", 0)
    (seen,) = found.workers
    assert (seen.pid, seen.requests) == (os.getpid(), 12)
    assert seen.uptime_ms >= 0


def test_what_fails_is_named(
    status: Callable[[], ServiceStatus], database: Database, worker: Registration
) -> None:
    with Candidate(database.path) as candidate:
        assert candidate.acquire()
        StateFile(database.state_directory).beat(BackgroundState(4711, 1000))
        assert status().exit_code == 0
        failing = Finding("view.failing", "test.background", "A view fails.", subject="x", detail="It broke.")
        registration = Registration(database.state_directory, "background")
        registration.publish([failing], None)
        found = status()
        assert (found.condition, found.exit_code) == ("degraded", 13)
        assert found.findings == (replace(failing, process="background"),)
        assert (found.background.pid, found.background.elected_at) == (4711, 1000)
        registration.close()
        assert status().exit_code == 0
        os.utime(database.state_directory / "background.json", (1, 1))
        worker_began_long_ago(database)
        assert codes(status()) == ["background.silent"]
    assert status().exit_code == 0


def codes(found: ServiceStatus) -> list[str]:
    return [finding.code for finding in found.findings]


def worker_began_long_ago(database: Database) -> None:
    for file in (database.state_directory / "processes").glob("*.json"):
        text = file.read_text()
        with file.open("r+") as stream:
            stream.write(re.sub(r'"started_ms":\d+', '"started_ms":1000000000000', text))


def test_a_background_process_that_a_server_keeps_and_that_is_gone_is_a_problem(
    status: Callable[[], ServiceStatus], database: Database
) -> None:
    registration = Registration(database.state_directory, "worker", keeps_background=True)
    assert status().exit_code == 0
    worker_began_long_ago(database)
    found = status()
    assert (codes(found), found.exit_code) == (["background.missing"], 13)
    registration.close()


def test_what_cannot_be_written_comes_before_all_else(
    status: Callable[[], ServiceStatus], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = database.head()
    with monkeypatch.context() as patch:
        patch.setattr(type(database), "head", lambda _self: msgspec.structs.replace(head, latched=True))
        found = status()
    assert (found.condition, found.exit_code, found.database.latched) == ("unwritable", 9, True)
    monkeypatch.setattr(database.objects.log, "disk_space", lambda: (100, 1_000_000))
    found = status()
    assert (codes(found), found.exit_code) == (["database.full"], 9)
    monkeypatch.setattr(database.objects.log, "disk_space", lambda: (1 << 29, 1 << 36))
    assert codes(status()) == ["database.nearly-full"]
    monkeypatch.setattr(database.objects.log, "disk_space", lambda: (1 << 29, 1 << 30))
    assert codes(status()) == []


def test_the_command_prints_it_for_people_and_for_scripts(
    start: Callable[..., Any], run: Run, work: Path, eventually: Callable[..., Any]
) -> None:
    server = start("-D", "x.svcdb", "--workers", "2")
    assert server.get("/system/health")[0] == 200

    def healthy() -> Any:
        done = run("status", "-D", "x.svcdb", "--json")
        found = json.loads(done.stdout)
        ready = found["background"]["running"] and found["views"] and len(found["workers"]) == 2
        # The first commits, such as that of the signing key, are made meanwhile.
        ready = ready and not any(view["behind"] for view in found["views"])
        return found if ready and done.returncode == 0 else None

    found = eventually(healthy)
    assert found["condition"] == "healthy"
    assert {view["behind"] for view in found["views"]} == {0}
    shown = run("status", "-D", "x.svcdb")
    assert shown.returncode == 0
    assert re.search(r"^status: +healthy$", shown.stdout, re.MULTILINE)
    assert re.search(rf"^background: +pid {found['background']['pid']}, since ", shown.stdout, re.MULTILINE)
    assert re.search(r"^ +job counting of test.background: ", shown.stdout, re.MULTILINE)
    assert server.stop() == 0
    assert run("status", "-D", "x.svcdb").returncode == 14
    assert run("status", "-D", "missing.svcdb").returncode == 3


def test_the_documentation_has_every_condition_with_its_exit_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", OPERATING.read_text(), re.MULTILINE)
    assert {name: int(code) for name, code in rows} == {
        condition.value: condition.exit_code for condition in ServiceCondition
    }
    codes = re.findall(r"^\| (\d+) \| [^|]+ \| [^|]* \|$", OPERATING.read_text(), re.MULTILINE)
    assert {condition.exit_code for condition in ServiceCondition} <= {int(code) for code in codes}


def test_spans_of_time_are_readable() -> None:
    from svc_cli.status_command import _duration

    spans = [0, 59_999, 61_000, 3_600_000, 90_061_000]
    assert [_duration(span) for span in spans] == ["0 s", "59 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]
