"""A database whose plugin has views and jobs that a test steers through files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.database import Database
from svc.plugins import Plugins, enable, load_plugins
from svc_testing.distributions import DistributionFactory

PLUGIN = '''
import os
import time
from pathlib import Path

from svc.plugin import View
from svc.plugins import BackgroundJob, PluginDescriptor, hookimpl

PLUGIN = PluginDescriptor(
    "test.background", "1.0", "For tests", (1, 1), "svc_test_background",
    adds={"jobs": ("svc_test_background:Counting",)},
)


class Names(View):
    """Every path that was put."""
    name = "test.names"
    format = 1
    def apply(self, commit, before, after, storage, start=0):
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put("/".join(change.path).encode(), b"")


class Fragile(View):
    """Fails while the process's directory has a file of this name."""
    name = "test.fragile"
    format = 1
    def apply(self, commit, before, after, storage, start=0):
        if Path("fail-view").exists():
            raise RuntimeError("The view was asked to fail, rt_secretsecret.")
        storage.put(b"count", str(commit.sequence).encode())


class Working(View):
    """Counts its own work: three pieces for each path, which it takes while no commit waits or in between."""
    name = "test.working"
    format = 1
    starts_at_head = True
    def bind(self, context):
        bound = Working()
        bound.word = context.plugin_id
        return bound
    def start(self, storage, commit):
        storage.put(b"q/started", b"")
    def apply(self, commit, before, after, storage, start=0):
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put(b"q/" + "/".join(change.path).encode(), b"")
    def work(self, storage, at, should_stop):
        if Path("fail-work").exists():
            raise RuntimeError("The work was asked to fail.")
        if Path("late-work").exists():
            storage.put(b"late", b"")
        for key, _ in list(storage.scan(b"q/")):
            time.sleep(0.005)
            storage.delete(key)
            storage.put(b"done/" + key[2:], self.word.encode())
            if should_stop():
                return True
        return Path("endless-work").exists()


class Counting(BackgroundJob):
    name = "counting"
    interval_s = 0.05
    def run(self, context):
        if Path("fail-job").exists():
            raise RuntimeError("The job was asked to fail.")
        with open("runs", "a") as file:
            file.write(f"{os.getpid()}\\n")


class Hanging(BackgroundJob):
    name = "hanging"
    interval_s = 0.05
    def run(self, context):
        while Path("hang-job").exists():
            Path("hangs").touch()
            time.sleep(0.05)


@hookimpl
def svc_register_views(views):
    views.add(Names())
    views.add(Fragile())
    views.add(Working())


@hookimpl
def svc_register_routes(routes):
    Path(f"routes-of-{os.getpid()}").touch()
    if Path("fail-routes").exists():
        raise RuntimeError("The routes were asked to fail.")


@hookimpl
def svc_background(context, jobs):
    jobs.add(Hanging())
'''

PLUGIN_ID = "test.background"


@pytest.fixture
def distributions(tmp_path: Path) -> Iterator[DistributionFactory]:
    """The plugin of these tests, installed here and for the processes that are started."""
    factory = DistributionFactory(tmp_path / "site")
    factory.install(
        "svc-test-background",
        modules={"svc_test_background": PLUGIN},
        entry_points={PLUGIN_ID: "svc_test_background:PLUGIN"},
    )
    yield factory
    factory.close()


@pytest.fixture
def environment(environment: dict[str, str], distributions: DistributionFactory) -> dict[str, str]:
    """The environment of a server that has the plugin of these tests too."""
    variables = distributions.environment(environment)
    return {**variables, "SVC_PLUGINS": f"{environment['SVC_PLUGINS']},{PLUGIN_ID}"}


@pytest.fixture
def plugins(distributions: DistributionFactory) -> Plugins:
    loaded = load_plugins([PLUGIN_ID])
    assert loaded.problems == ()
    return loaded


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the database, of this process and of those that it starts."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def database(work: Path, plugins: Plugins) -> Iterator[Database]:
    with Database(work / "x.svcdb") as opened:
        enable(opened, plugins, PLUGIN_ID)
        yield opened


@pytest.fixture
def put(database: Database) -> Callable[[str], int]:
    """Puts a file, and returns the number of the commit."""

    def put_file(name: str) -> int:
        with database.transaction() as transaction:
            transaction.put((name,), name.encode(), content_type="text/plain")
        return database.head().sequence

    return put_file


@pytest.fixture
def told(work: Path) -> Callable[[], dict[str, Any]]:
    """What the background process of ``x.svcdb`` tells; empty when nothing."""

    def read() -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((work / "x.svcdb.d" / "background.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    return read
