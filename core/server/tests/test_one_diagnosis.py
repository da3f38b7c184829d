"""One list of what is wrong: status, doctor, health and log show the same, whoever found it.

Each failure is that of a plugin of its own; those that leave each other alone are shown by one server.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from svc_testing import DistributionFactory

SECRET = "xyzzy-what-NUMBER-said"

DESCRIPTOR = """
from svc.plugins import CommandHome, PluginDescriptor
{before}
PLUGIN = PluginDescriptor(
    "test.ill-NUMBER", "1.0", "For tests", {api}, "svc_test_ill_NUMBER.plugin", commands=({commands})
)
{after}
"""

COMMON = f"""
import os, signal
from pathlib import Path
from svc.pipeline import public, send_json
from svc.plugin import View
from svc.plugins import *

def fail():
    if Path("ill").exists():
        raise RuntimeError("{SECRET} at " + str(Path.cwd()))

class IllView(View):
    name = "test.ill-NUMBER-view"
    format = 1
    def apply(self, commit, before, after, storage, start=0):
        fail()

class Job(BackgroundJob):
    name = "ill-NUMBER-job"
    interval_s = 0.2
    def run(self, context):
        fail()

class LongJob(BackgroundJob):
    name = "ill-NUMBER-job"
    interval_s = 0.2
    stuck_after_s = 0.5
    def run(self, context):
        while Path("ill").exists():
            if context.wait(0.1):
                break

class Check(HealthCheck):
    name = "ill-NUMBER-check"
    def check(self, context):
        fail()
        return HealthReport()

class Ailing(HealthCheck):
    name = "ill-NUMBER-check"
    def check(self, context):
        if Path("ill").exists():
            return HealthReport(HealthStatus.DEGRADED, "The index is behind.")
        return HealthReport()

class OddCheck(HealthCheck):
    name = "ill-NUMBER-check"
    def check(self, context):
        return "well" if Path("ill").exists() else HealthReport()

class Mode(AuthMode):
    name = "ill"
    def authenticate(self, credentials):
        fail()
        return ROOT_IDENTITY

class Reader:
    @public
    def on_get(self, req, resp):
        req.context.database.view("test.ill-NUMBER-view").read(lambda storage: None)
        send_json(resp, {{}})
"""


Then: TypeAlias = "Callable[[Case, Failure], None]"


@dataclass(frozen=True)
class Failure:
    """One thing that goes wrong. ``NUMBER`` stands for the number of its plugin.

    Attributes:
        code: of the finding.
        body: the plugin's code behind what all of them have.
        says: what root reads of it.
        files: what is there from the start.
        then: what is done to the running server.
        heals: whether all is well again when the files are gone.
        options: of ``svc start``.
        source: what the finding is about.
        descriptor: what stands before and after it, and its API.
        commands: the commands that its descriptor names.
        is_alone: whether it needs a server without other failures.
        number: of its plugin.
    """

    code: str
    body: str = ""
    says: str = SECRET
    files: tuple[str, ...] = ("ill",)
    then: Then | None = None
    heals: bool = False
    options: tuple[str, ...] = ()
    source: str = "test.ill-NUMBER"
    descriptor: tuple[str, str, str] = ("", "", "(1, 1)")
    commands: str = ""
    is_alone: bool = False
    number: int = 0

    def numbered(self, number: int) -> Failure:
        """Returns that of one plugin."""
        body, says, source = (
            text.replace("NUMBER", str(number)) for text in (self.body, self.says, self.source)
        )
        return replace(self, body=body, says=says, source=source, number=number)


def hook(name: str, arguments: str, line: str) -> str:
    return f"@hookimpl\ndef {name}({arguments}):\n    {line}\n"


def disable(plugin_id: str = "") -> Then:
    """Disables a plugin; by default the one that fails."""

    def do(case: Case, failure: Failure) -> None:
        disabled = plugin_id or failure.source
        assert case.run("plugins", "disable", disabled).returncode == 0
        case.get("/system/plugins")

    return do


def commit(case: Case, failure: Failure) -> None:
    assert case.run("plugins", "enable", "test.server").returncode == 0
    assert case.run("plugins", "disable", "test.server").returncode == 0


def read_view(case: Case, failure: Failure) -> None:
    commit(case, failure)
    assert case.get("/ill")[0] == 500


def ask(case: Case, failure: Failure) -> None:
    assert case.get("/system/plugins")[0] == (500 if Path(case.work / "ill").exists() else 200)


def stop_background(case: Case, failure: Failure) -> None:
    """Stops it at work: one that stops while it opens the database keeps everybody else from opening it."""
    pid = case.eventually(case.background)
    elected_at = case.heartbeat()
    case.eventually(lambda: case.heartbeat() > elected_at)
    os.kill(pid, signal.SIGSTOP)
    case.stopped = pid


def kill_background(case: Case, failure: Failure) -> None:
    pid = case.eventually(case.background)
    (case.work / "ill").touch()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


VIEW = hook("svc_register_views", "views", "views.add(IllView())")
JOBS = "svc_background", "context, jobs"
CHECKS = "svc_register_health_checks", "health_checks"
START = hook("svc_start", "context", "fail()")
COMMAND = 'CommandHome("ill", "svc_test_ill_NUMBER.absent:ill", "Is ill"),'
DYING = "import sys\n" + hook(
    "svc_background", "context, jobs", "Path('ill').exists() and os.kill(os.getpid(), signal.SIGKILL)"
)
IMPATIENT = "import svc_cli.processes.watch\nsvc_cli.processes.watch.MISSING_SECONDS = 3.0"
"""Half a minute is waited elsewhere; the plugin is imported by all who judge."""
MODE = hook("svc_register_auth_modes", "auth_modes", "auth_modes.add(Mode())")

FAILURES = {
    "its descriptor raises": Failure(
        "plugin.broken", descriptor=(f"raise OSError('{SECRET}')", "", "(1, 1)")
    ),
    "its descriptor is none": Failure(
        "plugin.broken", says="not a PluginDescriptor", descriptor=("", "PLUGIN = 'nothing'", "(1, 1)")
    ),
    "it is made for another svc": Failure(
        "plugin.too-new", says="needs plugin API 98", descriptor=("", "", "(98, 99)")
    ),
    "its import raises": Failure("plugin.broken", "fail()"),
    "it implements no hook": Failure(
        "plugin.unknown-hook", hook("svc_no_such", "context", "pass"), says="svc_no_such"
    ),
    "a registration hook raises": Failure("plugin.broken", hook(*CHECKS, "fail()")),
    "it fails to start": Failure("plugin.start-failed", START),
    "it fails to start where no background process runs": Failure(
        "plugin.start-failed", START, options=("--background", "false")
    ),
    "it fails to begin in the background": Failure("plugin.background-failed", hook(*JOBS, "fail()")),
    "it fails to stop": Failure("plugin.stop-failed", hook("svc_stop", "context", "fail()"), then=disable()),
    "it refuses to be enabled at first": Failure(
        "plugin.not-enabled", hook("svc_enable", "context", "fail()"), says="svc plugins enable"
    ),
    "a view fails": Failure("view.failing", VIEW, then=commit, heals=True),
    "a view fails where no background process runs": Failure(
        "view.failing",
        VIEW + hook("svc_register_routes", "routes", 'routes.add("/ill", Reader())'),
        options=("--background", "false"),
        then=read_view,
    ),
    "a job fails": Failure("job.failing", hook(*JOBS, "jobs.add(Job())"), heals=True),
    "a job does not end": Failure(
        "job.stuck", hook(*JOBS, "jobs.add(LongJob())"), says="no more than 0.5 s", heals=True
    ),
    "a health check raises": Failure("check.failed", hook(*CHECKS, "health_checks.add(Check())"), heals=True),
    "a health check is degraded": Failure(
        "check.degraded",
        hook(*CHECKS, "health_checks.add(Ailing())"),
        says="The index is behind.",
        heals=True,
    ),
    "a health check gives something else": Failure(
        "check.failed", hook(*CHECKS, "health_checks.add(OddCheck())"), says="HealthReport", heals=True
    ),
    "a command cannot be imported": Failure(
        "command.broken", commands=COMMAND, says="svc_test_ill_NUMBER.absent"
    ),
    "the auth mode is disabled": Failure(
        "auth.unavailable",
        says="svc plugins enable auth.testing",
        then=disable("auth.testing"),
        source="auth.testing",
        is_alone=True,
    ),
    "the auth mode raises": Failure("auth.failing", MODE, options=("--auth", "ill"), then=ask, is_alone=True),
    "the background process hangs": Failure(
        "background.silent",
        IMPATIENT,
        says="does not respond",
        then=stop_background,
        source="server",
        is_alone=True,
    ),
    "the background process dies at each start": Failure(
        "background.crashing",
        DYING,
        says="times in a row",
        files=(),
        then=kill_background,
        source="server",
        is_alone=True,
    ),
}


def grouped() -> dict[str, list[str]]:
    """Returns which failures one server shows, by a name for it."""
    groups: dict[str, list[str]] = {}
    for name, failure in FAILURES.items():
        words = ["those that end" if failure.heals else "those that stay", *failure.options]
        groups.setdefault(name if failure.is_alone else " ".join(words), []).append(name)
    return groups


GROUPS = grouped()


class Case:
    """A running server with ill plugins, and all that can be asked."""

    def __init__(self, work: Path, server: Any, environment: dict[str, str], eventually: Any) -> None:
        self.work = work
        self.server = server
        self.environment = environment
        self.eventually = eventually
        self.stopped = 0

    def get(self, path: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=20)
        connection.request("GET", path)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*SVC, *words, "-D", "data.svcdb"]
        return subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def background(self) -> int | None:
        """The background process, once it has told of itself."""
        try:
            return int(json.loads((self.work / "data.svcdb.d" / "background.json").read_text())["pid"])
        except (OSError, ValueError):
            return None

    def heartbeat(self) -> int:
        """When the background process last told of itself: at its election, and again once it is at work."""
        return (self.work / "data.svcdb.d" / "background.json").stat().st_mtime_ns


SVC = [sys.executable, "-c", "from svc_cli import main; main()"]


@pytest.fixture
def eventually() -> Callable[..., Any]:
    def wait(condition: Callable[[], Any], seconds: float = 75.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, "it did not come about in time"
            time.sleep(0.1)
        return found

    return wait


@pytest.fixture
def failures(request: pytest.FixtureRequest) -> list[Failure]:
    numbers = {name: number for number, name in enumerate(FAILURES, 1)}
    return [FAILURES[name].numbered(numbers[name]) for name in GROUPS.get(request.param, [request.param])]


@pytest.fixture
def environment(environment: dict[str, str], failures: list[Failure], tmp_path: Path) -> dict[str, str]:
    factory = DistributionFactory(tmp_path / "site", in_process=False)
    allowed = [environment["SVC_PLUGINS"]]
    for failure in failures:
        before, after, api = failure.descriptor
        package = f"svc_test_ill_{failure.number}"
        plugin_id = f"test.ill-{failure.number}"
        texts = {
            "descriptor": DESCRIPTOR.format(before=before, after=after, api=api, commands=failure.commands),
            "plugin": COMMON + failure.body,
        }
        modules = {
            f"{package}.{name}": text.replace("NUMBER", str(failure.number)) for name, text in texts.items()
        }
        factory.install(
            package.replace("_", "-"),
            modules=modules,
            entry_points={plugin_id: f"{package}.descriptor:PLUGIN"},
        )
        allowed.append(plugin_id)
    return {**factory.environment(environment), "SVC_PLUGINS": ",".join(allowed)}


@pytest.fixture
def case(
    start: Callable[..., Any],
    environment: dict[str, str],
    failures: list[Failure],
    tmp_path: Path,
    eventually: Any,
) -> Iterator[Case]:
    for failure in failures:
        for name in failure.files:
            (tmp_path / name).touch()
    server = start("--log-format", "json", *failures[0].options)
    made = Case(tmp_path, server, environment, eventually)
    for failure in failures:
        if failure.then is not None:
            failure.then(made, failure)
    yield made
    if made.stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(made.stopped, signal.SIGCONT)


def shown_by_status(case: Case) -> list[Any]:
    done = case.run("status", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode == 0) == (found["findings"] == []), done
    assert (found["condition"] == "healthy") == (found["findings"] == [])
    listed: list[Any] = found["findings"]
    return listed


def shown_by_doctor(case: Case) -> list[Any]:
    done = case.run("plugins", "doctor", "--json")
    listed: list[Any] = json.loads(done.stdout)
    assert done.returncode == (10 if listed else 0), done
    return listed


def shown_by_health(case: Case) -> list[Any]:
    status, body = case.get("/system/health")
    assert status == 200
    listed: list[Any] = body.get("findings", [])
    assert body["status"] == ("degraded" if listed else "healthy")
    return listed


def identities(findings: list[Any]) -> set[tuple[str, str]]:
    return {(finding["code"], finding["source"]) for finding in findings}


def lines_of(log: str) -> list[Any]:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("logger") == "svc.findings"]


def said_by(findings: list[Any], failure: Failure) -> str:
    """Returns what a list of findings says of one failure."""
    chosen = [one for one in findings if (one["code"], one["source"]) == (failure.code, failure.source)]
    return json.dumps(chosen)


@pytest.mark.parametrize("failures", GROUPS, indirect=True)
def test_all_surfaces_show_what_is_wrong(case: Case, failures: list[Failure], eventually: Any) -> None:
    wanted = {(failure.code, failure.source) for failure in failures}
    eventually(lambda: wanted <= identities(shown_by_health(case)))

    def agree() -> bool:
        """Whether all of them say the same, and nothing but that."""
        shown = identities(shown_by_status(case))
        return wanted <= shown == identities(shown_by_doctor(case)) == identities(shown_by_health(case))

    eventually(agree)
    public = json.dumps(case.get("/system/health")[1])
    assert "xyzzy" not in public
    assert str(case.work) not in public
    for words in (("status",), ("plugins", "doctor")):
        done = case.run(*words)
        assert done.returncode in (13, 10)
        for failure in failures:
            assert failure.code in done.stdout
            assert failure.says in done.stdout
    lines = lines_of(case.server.log.read_text())
    for failure in failures:
        told = [line for line in lines if line.get("code") == failure.code]
        assert any(failure.says in json.dumps(line) for line in told), case.server.log.read_text()
    if not any(failure.code in ("auth.unavailable", "auth.failing") for failure in failures):
        found = case.get("/system/findings")[1]["findings"]
        assert all(failure.says in said_by(found, failure) for failure in failures)
        assert all(finding["since_ms"] for finding in found)
    if failures[0].heals:
        (case.work / "ill").unlink()
        eventually(lambda: shown_by_health(case) == [])
        eventually(lambda: shown_by_status(case) == [])
        assert shown_by_doctor(case) == []
        ended = [line for line in lines_of(case.server.log.read_text()) if "any more" in line["event"]]
        assert {failure.code for failure in failures} <= {line["code"] for line in ended}
    assert case.server.stop() == 0


@pytest.mark.parametrize("failures", ["its import raises"], indirect=True)
def test_a_plugin_that_the_server_does_not_allow_is_nobodys_trouble(
    environment: dict[str, str],
    failures: list[Failure],
    start: Callable[..., Any],
    tmp_path: Path,
    eventually: Any,
) -> None:
    (tmp_path / "ill").touch()
    assert failures[0].source in environment["SVC_PLUGINS"].split(",")
    server = start("--plugins", "test.server,auth.testing")
    case = Case(tmp_path, server, environment, eventually)
    assert shown_by_health(case) == []
    eventually(lambda: json.loads(case.run("status", "--json").stdout)["background"]["running"])
    assert shown_by_status(case) == shown_by_doctor(case) == []
    assert server.stop() == 0
    # Where nobody serves it, what the shell allows counts.
    assert identities(shown_by_doctor(case)) == {("plugin.broken", failures[0].source)}
