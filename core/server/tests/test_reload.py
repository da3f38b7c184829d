"""SIGHUP: settings that can't be used are told, and change nothing; others count from then on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Launcher  # noqa: TID252

BASE = 'database = "x.svcdb"\nhost = "127.0.0.1"\n'
PLUGINS = 'plugins = ["test.server", "auth.testing", "test.cluster"]\n'
GOOD = f'{BASE}{PLUGINS}auth = "testing"\n'

Eventually = Callable[..., Any]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reload")


@pytest.fixture(scope="module")
def server(environment: dict[str, str], directory: Path) -> Iterator[Any]:
    """A server with all of its settings in ``c.toml``."""
    kept = {name: value for name, value in environment.items() if not name.startswith("SVC_")}
    launcher = Launcher(kept, directory)
    (directory / "c.toml").write_text(GOOD)
    yield launcher("--config", "c.toml")
    launcher.end()


def children(server: Any) -> set[str]:
    """The processes of a server: its workers and the background process."""
    pid = server.process.pid
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def refusals(server: Any) -> list[str]:
    return [line for line in server.log.read_text().splitlines() if line.startswith("svc: not reloaded: ")]


REFUSED = [
    (f'{GOOD}plugin-option = ["nosuch.x=1"]\n', "nosuch.x"),
    (f'{GOOD}plugin-option = ["test.cluster.nosuch=1"]\n', "'nosuch'"),
    (f'{GOOD}plugin-option = ["test.cluster.expiry=soon"]\n', "'expiry' of the plugin 'test.cluster'"),
    (f'{GOOD}plugin-option = ["test.cluster"]\n', "id.key=value"),
    (f'{GOOD}expiry = "soon"\n', "expiry in c.toml"),
    (f"{GOOD}nosuch = 1\n", "nosuch"),
    (f'{BASE}{PLUGINS}auth = "bogus"\n', "--auth bogus needs a plugin"),
    (f'{BASE}plugins = ["test.server", "auth.testing", "auth.disabled"]\nauth = "disabled"\n', "not enabled"),
    (f'{BASE}plugins = ["test.server"]\nauth = "testing"\n', "--auth testing"),
    (GOOD.replace("x.svcdb", "other.svcdb"), "The database would be other.svcdb"),
    (GOOD.replace("x.svcdb", "/nonexistent/x.svcdb"), "The database would be /nonexistent/x.svcdb"),
    (GOOD.replace("x.svcdb", "/etc/passwd"), "The database would be /etc/passwd"),
    (GOOD.replace("127.0.0.1", "127.0.0.2"), "The host and port would be 127.0.0.2"),
    (f'{GOOD}tls-cert = "no.pem"\ntls-key = "no.pem"\n', "no.pem"),
    ("[" * 5000, "not valid TOML"),
    (None, "can't be read"),
]


@pytest.mark.parametrize(("content", "reason"), REFUSED)
def test_what_cannot_be_used_is_told_and_changes_nothing(
    server: Any, directory: Path, eventually: Eventually, content: str | None, reason: str
) -> None:
    eventually(lambda: len(children(server)) == 2)
    before = children(server), (directory / "x.svcdb").read_bytes(), len(refusals(server))
    (directory / "c.toml").unlink()
    if content is not None:
        (directory / "c.toml").write_text(content)
    server.process.send_signal(signal.SIGHUP)
    told = eventually(lambda: refusals(server)[before[2] :])
    assert reason in told[0]
    (directory / "c.toml").write_text(GOOD)
    assert server.get("/system/health")[0] == 200
    assert (children(server), (directory / "x.svcdb").read_bytes()) == before[:2]
    assert not (directory / "other.svcdb").exists()


def test_plugins_that_are_allowed_no_more_are_out_of_use(
    server: Any, directory: Path, eventually: Eventually
) -> None:
    count = len(refusals(server))
    eventually(lambda: server.get("/cluster")[0] == 200)
    (directory / "c.toml").write_text(GOOD.replace(', "test.cluster"', ""))
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: server.get("/cluster")[0] == 404)
    (directory / "c.toml").write_text(GOOD + 'join = "http://one"\n')
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: server.get("/cluster") == (200, b'["http://one","",[],true]\n'))
    assert len(refusals(server)) == count
