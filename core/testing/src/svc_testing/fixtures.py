"""Fixtures that every test has once svc is installed. Imported by every run of pytest: it imports little."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins import Plugins
    from svc_testing.distributions import DistributionFactory
    from svc_testing.processes import Completed, Server

__all__ = [
    "database",
    "database_path",
    "loaded_plugins",
    "run_svc",
    "server",
    "svc_background",
    "svc_plugins",
    "testing_auth",
]


# An assertion of a contract shall say what differs. pytest sees to that for this distribution; the kits of
# drivers are in others.
pytest.register_assert_rewrite(
    *sorted({f"{entry.value.partition('.')[0]}.testing" for entry in entry_points(group="svc.plugins")})
)


@pytest.fixture
def svc_background() -> bool:
    """Whether ``server`` has a background process, which runs views and jobs; it has none. Override it."""
    return False


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """Ids of the plugins that the other fixtures use, beside ``auth.testing``; override it."""
    return ()


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    """Where ``database`` and ``server`` keep the database of this test."""
    return tmp_path / "test.svcdb"


@pytest.fixture
def loaded_plugins(svc_plugins: Sequence[str]) -> Plugins:
    """The plugins of ``svc_plugins``, loaded in this process; a problem with any of them fails the test.

    ``auth.testing`` is among them, for applications made with ``PipelineSettings(auth="testing")``.
    """
    from svc_testing.testing_auth import load_with_testing_auth

    return load_with_testing_auth(*svc_plugins)


@pytest.fixture
def database(database_path: Path, loaded_plugins: Plugins) -> Iterator[Database]:
    """An open, empty database in which the plugins of ``svc_plugins`` are enabled and started."""
    from svc.database import Database
    from svc.plugins import ActivePlugins, initialize

    with Database(database_path) as opened:
        problems = initialize(opened, loaded_plugins)
        assert not problems, "; ".join(problem.message for problem in problems)
        active = ActivePlugins(loaded_plugins, opened)
        active.start()
        try:
            yield opened
        finally:
            active.stop()


@pytest.fixture
def server(database_path: Path, svc_plugins: Sequence[str], svc_background: bool) -> Iterator[Server]:
    """A real ``svc start`` on a free port, with the plugins of ``svc_plugins``; every request is root's.

    It has no background process, so that jobs, tasks and schedules rest, unless ``svc_background`` says so.
    """
    from svc_testing.processes import start_server

    options = ("--background", str(svc_background).lower())
    with start_server(database_path, *options, plugins=svc_plugins) as running:
        yield running


@pytest.fixture(scope="session")
def testing_auth(tmp_path_factory: pytest.TempPathFactory) -> DistributionFactory:
    """Where ``auth.testing`` is installed: processes with its ``environment()`` see the plugin."""
    from svc_testing.distributions import DistributionFactory
    from svc_testing.testing_auth import install_testing_auth

    distributions = DistributionFactory(tmp_path_factory.mktemp("auth-testing"), in_process=False)
    install_testing_auth(distributions)
    return distributions


@pytest.fixture
def run_svc(
    tmp_path: Path, svc_plugins: Sequence[str], testing_auth: DistributionFactory
) -> Callable[..., Completed]:
    """Runs ``svc`` in a process of its own, in the test's directory: ``run_svc("info", "-D", path)``.

    The plugins of ``svc_plugins`` and ``auth.testing`` are allowed; a new database has them enabled.
    """
    from svc_testing.processes import run_svc as run
    from svc_testing.testing_auth import with_testing_auth

    allowed = ",".join(with_testing_auth(svc_plugins))

    def run_with_plugins(
        *arguments: str | os.PathLike[str], env: Mapping[str, str] | None = None, **options: Any
    ) -> Completed:
        variables = testing_auth.environment({"SVC_PLUGINS": allowed, **(env or {})})
        return run(*arguments, env=variables, **{"cwd": tmp_path, **options})

    return run_with_plugins
