"""Servers of the tests of versions: one that most tests share, and one that knows several callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc_blackbox.client import Client
from svc_blackbox.server import Server, free_port
from svc_blackbox.versions import FAMILIES, Family
from svc_testing import DistributionFactory

CALLERS = '''
"""An auth mode whose tokens are the names of some callers; without a token one is root."""

from svc.plugins import ROOT_IDENTITY, ROOT_USER_ID, Identity, PluginDescriptor, ScopedRule, hookimpl
from svc_testing import TestingAuthMode

PLUGIN = PluginDescriptor(
    id="auth.callers", version="1.0", summary="Callers of a test", api=(1, 1), implementation="svc_callers"
)


class Rights:
    def __init__(self, **flags):
        self.flags = {"/" + name.replace("_", "/"): letters for name, letters in flags.items()}

    def allows(self, operation, path):
        for length in range(len(path), -1, -1):
            flags = self.flags.get("/" + "/".join(path[:length]))
            if flags is not None:
                return operation.letter in flags
        return False


def user(number, name, **flags):
    return Identity(f"00000000-0000-4000-8000-{number:012}", name, rights=Rights(**flags))


def scoped(glob, flags):
    return Identity(ROOT_USER_ID, "root", is_root=True, key_id="key", rules=(ScopedRule(glob, flags),))


class Callers(TestingAuthMode):
    name = "callers"

    def bind(self, context):
        return self


@hookimpl
def svc_register_auth_modes(auth_modes):
    tokens = {
        "root": ROOT_IDENTITY,
        "ann": user(1, "ann", **{"": "crudlify"}),
        "bob": user(2, "bob", **{"": "", "public": "crudl"}),
        "reader": user(3, "reader", **{"": "rl"}),
        "writer": user(4, "writer", **{"": "crul"}),
        "scoped": scoped("/own/**", "crudl---"),
        "share": Identity(None, "share", key_id="s", rules=(ScopedRule("/own/**", "-r--l---"),)),
    }
    auth_modes.add(Callers(None, tokens))
'''


@pytest.fixture(scope="session")
def version_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests that do not mind what else its database holds."""
    server = Server(tmp_path_factory.mktemp("versions") / "versions.svcdb").start()
    yield server
    server.close()


@pytest.fixture
def http(version_server: Server) -> Iterator[Client]:
    """A connection to the server of the tests of versions."""
    with Client(version_server.url) as client:
        yield client


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> Family:
    """Each of the two families of paths."""
    found: Family = request.param
    return found


@pytest.fixture(scope="session")
def callers_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that knows callers by their tokens: root, ann, bob, reader, writer, scoped, share."""
    distributions = DistributionFactory(tmp_path_factory.mktemp("callers"), in_process=False)
    distributions.install(
        "svc-auth-callers",
        modules={"svc_callers": CALLERS},
        entry_points={"auth.callers": "svc_callers:PLUGIN"},
    )
    database = tmp_path_factory.mktemp("called") / "called.svcdb"
    server = Server(database, environment=distributions.environment())
    server.start_with(
        "-D", str(database), "--auth", "callers", "--port", str(free_port()), "--workers", "1",
        "--plugins", "auth.callers,files,history,versions,backup",
    )  # fmt: skip
    yield server
    server.close()


class Caller(Client):
    """A connection whose requests carry a caller's token."""

    def __init__(self, url: str, token: str | None) -> None:
        super().__init__(url)
        self._credentials = {} if token is None else {"Authorization": f"Bearer {token}"}

    def request(self, method, target, body=None, headers=None, **options):
        return super().request(method, target, body, {**self._credentials, **(headers or {})}, **options)


@pytest.fixture
def caller(callers_server: Server) -> Iterator[Callable[[str | None], Caller]]:
    """Gives connections of callers by their tokens; None is nobody."""
    opened: list[Caller] = []

    def connect(token: str | None) -> Caller:
        opened.append(Caller(callers_server.url, token))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def database_of(tmp_path: Path) -> Callable[[dict[str, bytes]], Path]:
    """Makes a database with some files in it, without a server."""
    from svc_blackbox.prepared import run_svc

    def make(contents: dict[str, bytes], name: str = "local") -> Path:
        source = tmp_path / f"{name}-source"
        for path, content in contents.items():
            target = source / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        source.mkdir(exist_ok=True)
        run_svc("load", "-D", tmp_path / f"{name}.svcdb", source)
        return tmp_path / f"{name}.svcdb"

    return make
