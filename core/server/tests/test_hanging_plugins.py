"""A plugin that hangs is named, by everything that looks, and keeps nobody who looks waiting."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from svc.database.view_marks import DATABASES, MAP_SIZE
from svc_testing import Completed, DistributionFactory, Server, run_svc, start_server

DESCRIPTOR = """
import os, time
from svc.plugin import PluginDescriptor

PLUGIN = PluginDescriptor("test.hanging", "1.0", "For tests", (1, 1), "svc_test_hanging")
"""
IMPLEMENTATION = """
import os, time
from pathlib import Path
from svc.plugin import HealthCheck, HealthReport, View, hookimpl

def hang(where):
    while Path(os.environ["SVC_TESTS_HANG"] + where).exists():
        time.sleep(0.05)

hang("import")

class HangingView(View):
    name = "test.hanging-view"
    format = 1
    def apply(self, commit, before, after, storage, start=0):
        storage.put(b"a", b"b")
        hang("view")

class Check(HealthCheck):
    name = "hanging"
    def check(self, context):
        hang("check")
        return HealthReport()

@hookimpl
def svc_start(context):
    hang("start")

@hookimpl
def svc_register_views(views):
    views.add(HangingView())

@hookimpl
def svc_register_health_checks(health_checks):
    health_checks.add(Check())
"""


class Hanging:
    """A plugin that hangs where a file says so."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "x.svcdb"
        factory = DistributionFactory(directory / "installed", in_process=False)
        factory.install(
            "svc-test-hanging",
            modules={"svc_test_hanging_descriptor": DESCRIPTOR, "svc_test_hanging": IMPLEMENTATION},
            entry_points={"test.hanging": "svc_test_hanging_descriptor:PLUGIN"},
        )
        self.environment = factory.environment({"SVC_TESTS_HANG": f"{directory}/hangs-in-"})

    @contextmanager
    def in_(self, where: str) -> Iterator[None]:
        file = self.directory / f"hangs-in-{where}"
        file.touch()
        try:
            yield
        finally:
            file.unlink()

    def server(self, *options: str, wait: bool = True) -> Any:
        return start_server(
            self.path, *options, plugins=("files", "test.hanging"), env=self.environment, wait=wait
        )

    def run(self, *words: str) -> Completed:
        return run_svc(*words, "-D", self.path, env={**self.environment, "SVC_PLUGINS": "files,test.hanging"})


def eventually(look: Any) -> Any:
    deadline = time.monotonic() + 30
    while True:
        found = look()
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Hanging:
    made = Hanging(tmp_path_factory.mktemp("hanging"))
    with made.server("--background", "true") as server:
        assert server.get("/system/health").json()["status"] == "healthy"
        assert server.request("PUT", "/files/a", body=b"a").status == 201
        assert eventually(lambda: list(Path(f"{made.path}.d", "views").glob("test.hanging-view-*")))
    return made


def health(server: Server) -> Any:
    return server.request("GET", "/system/health", timeout=10).json()


def test_a_health_check_that_hangs_is_named_by_health_and_by_commands(hanging: Hanging) -> None:
    with hanging.server() as server:
        with hanging.in_("check"):
            assert eventually(lambda: health(server)["status"] == "degraded")
            answer = health(server)
            assert answer["checks"]["hanging"]["message"] == "The check does not answer."
            found = eventually(lambda: "plugin.hanging" in hanging.run("plugins", "doctor", "--json").stdout)
            assert found
        assert eventually(lambda: health(server)["status"] == "healthy")


@pytest.mark.parametrize("command", [("status",), ("plugins", "doctor")])
def test_an_import_that_hangs_is_named_by_commands(hanging: Hanging, command: tuple[str, ...]) -> None:
    with hanging.in_("import"):
        ran = hanging.run(*command, "--json")
    found = json.loads(ran.stdout)
    (finding,) = found["findings"] if isinstance(found, dict) else found
    assert (finding["code"], finding["source"]) == ("plugin.hanging", "test.hanging")
    assert "the import of svc_test_hanging" in finding["detail"]


@pytest.mark.parametrize("where", ["import", "start"])
def test_a_server_that_hangs_while_it_starts_says_where(hanging: Hanging, where: str) -> None:
    with hanging.in_(where):
        context = hanging.server(wait=False)
        with context as server:
            try:
                words = "plugins", "doctor", "--json"
                assert eventually(lambda: "plugin.hanging" in hanging.run(*words).stdout)
                assert "plugin.hanging" in hanging.run("status", "--json").stdout
            finally:
                server.kill()


HOLDER = f"""
import lmdb, sys
environment = lmdb.open(sys.argv[1], map_size={MAP_SIZE}, max_dbs={len(DATABASES)}, sync=False)
with environment.begin(write=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_view_that_hangs_within_its_transaction_keeps_no_status(hanging: Hanging) -> None:
    (directory,) = Path(f"{hanging.path}.d", "views").glob("test.hanging-view-*")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            ran = run_svc(
                "status",
                "--json",
                "-D",
                hanging.path,
                env={**hanging.environment, "SVC_PLUGINS": "files,test.hanging"},
                timeout=20,
            )
        finally:
            holder.stdin.close()
    assert "test.hanging-view" in [one["name"] for one in json.loads(ran.stdout)["views"]]
