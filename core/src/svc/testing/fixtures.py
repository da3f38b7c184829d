"""Fixtures that every test has once svc is installed. Imported by every run of pytest: it imports little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins import Plugins
    from svc.testing.processes import Completed, Server

__all__ = ["database", "database_path", "loaded_plugins", "run_svc", "server", "svc_plugins"]


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """Ids of the plugins that ``database`` and ``server`` have; override it where you need others."""
    return ()


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    """Where ``database`` and ``server`` keep the database of this test."""
    return tmp_path / "test.svcdb"


@pytest.fixture
def loaded_plugins(svc_plugins: Sequence[str]) -> Plugins:
    """The plugins of ``svc_plugins``, loaded in this process; a problem with any of them fails the test."""
    from svc.plugins import load_plugins

    plugins = load_plugins(svc_plugins)
    assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
    return plugins


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
def server(database_path: Path, svc_plugins: Sequence[str]) -> Iterator[Server]:
    """A real ``svc start --auth disabled`` on a free port, with the plugins of ``svc_plugins``."""
    from svc.testing.processes import start_server

    plugins = tuple(dict.fromkeys(["auth.disabled", *svc_plugins]))
    with start_server(database_path, plugins=plugins) as running:
        yield running


@pytest.fixture
def run_svc(tmp_path: Path) -> Callable[..., Completed]:
    """Runs ``svc`` in a process of its own, in the test's directory: ``run_svc("info", "-D", path)``."""
    import functools

    from svc.testing.processes import run_svc as run

    return functools.partial(run, cwd=tmp_path)
