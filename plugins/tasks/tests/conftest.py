"""A database with the plugin and with task types of a stranger, installed as a distribution of their own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient
from svc_tasks.api import TASK_TYPES, Task, enqueue, find_task
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.running.supervisor import Supervisor

from svc.plugin import Database, Identity
from svc.plugins import Plugins
from svc_cli import extensions_of
from svc_testing import DistributionFactory, load_with_testing_auth, serve_in_process

STRANGE = Path(__file__).parent / "importable" / "strange_tasks.py"
DESCRIPTOR = """
import msgspec
from svc.plugin import PluginDescriptor, Secret

class Settings(msgspec.Struct, frozen=True):
    password: Secret = Secret("none")

PLUGIN = PluginDescriptor(
    id="acme.strange", version="1", summary="Strange tasks", api=(1, 1),
    implementation="acme_strange.plugin", extends=("tasks:task_types",), configuration=Settings,
)
"""
PLUGIN = """
from svc.plugin import hookimpl

@hookimpl
def svc_register_task_types(task_types):
    from acme_strange.types import TYPES
    for kind in TYPES:
        task_types.add(kind())
"""
ALL = ("tasks", "acme.strange")


def install(factory: DistributionFactory) -> None:
    factory.install(
        "acme-strange",
        modules={
            "acme_strange.descriptor": DESCRIPTOR,
            "acme_strange.plugin": PLUGIN,
            "acme_strange.types": STRANGE.read_text(),
        },
        entry_points={"acme.strange": "acme_strange.descriptor:PLUGIN"},
    )


@pytest.fixture(scope="session", autouse=True)
def strange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributionFactory]:
    """The strange types, for this process and for those that tests start."""
    factory = DistributionFactory(tmp_path_factory.mktemp("strange"))
    install(factory)
    with pytest.MonkeyPatch.context() as patch:
        # What the processes of tasks may load: the plugins of these tests alone.
        patch.setenv("SVC_PLUGINS", ",".join((*ALL, "auth.testing")))
        yield factory
    factory.close()


@pytest.fixture(scope="session")
def plugins(strange: DistributionFactory) -> Plugins:
    return load_with_testing_auth(*ALL)


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return ALL


class Http:
    """Calls the routes of one application."""

    def __init__(self, app: Any, database: Database, become: Callable[[Identity | None], None]) -> None:
        self.database = database
        self.become = become
        self._client = TestClient(app)

    def __call__(self, method: str, path: str, **options: Any) -> Result:
        return self._client.simulate_request(method, path, **options)

    def get(self, where: str, /, **params: Any) -> Result:
        return self("GET", where, params=params)

    def delete(self, path: str) -> Result:
        return self("DELETE", path)

    def send(self, method: str, path: str, value: Any) -> Result:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self(method, path, body=body, headers={"Content-Type": "application/json"})

    def post(self, path: str, value: Any = None) -> Result:
        return self("POST", path) if value is None else self.send("POST", path, value)


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "http.svcdb", plugins) as (app, database, mode):

        def become(other: Identity | None) -> None:
            mode.identity = other

        yield Http(app, database, become)


class Work:
    """A database and who runs its tasks, in this process."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.types = extensions_of(database, "tasks", TASK_TYPES)

    def add(self, kind: str, /, **args: Any) -> Task:
        found = self.types[kind]
        return enqueue(self.database, found.value, args, configuration=found.context.configuration)

    def task(self, task: Task) -> Task:
        return find_task(self.database, task.id)

    @contextmanager
    def supervisor(self, **settings: Any) -> Iterator[Supervisor]:
        made = Supervisor(self.database, lambda: self.types, TasksConfiguration(**settings))
        made.recover()
        try:
            yield made
        finally:
            made.abandon()

    def finish(self, *tasks: Task, **settings: Any) -> list[Task]:
        """Runs until these tasks are over."""
        with self.supervisor(**settings) as supervisor:
            self.tick_until(supervisor, lambda: all(self.task(one).is_finished for one in tasks))
        return [self.task(one) for one in tasks]

    def tick_until(self, supervisor: Supervisor, holds: Callable[[], bool], seconds: float = 60) -> None:
        tick_until(supervisor, holds, seconds)


def tick_until(supervisor: Supervisor, holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it takes too long"
        supervisor.tick(0.02)


@pytest.fixture
def work(database: Database) -> Work:
    return Work(database)


def wait_for(holds: Callable[[], Any], seconds: float = 60) -> Any:
    """Asks until the answer is true, and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


Args = Mapping[str, Any]
