"""A change of grants, groups or users counts with the next request, on every worker of a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from svc_blackbox.client import Client, files
from svc_blackbox.server import Server, free_port
from svc_testing import DistributionFactory

CLIENTS = 8
ROUNDS = 3

GRANTED = '''
"""An auth mode whose tokens are usernames; what a user may do follows from grants."""

from svc.errors import AuthRequired
from svc.plugins import ROOT_IDENTITY, AuthMode, Identity, PluginDescriptor, hookimpl

PLUGIN = PluginDescriptor(
    id="auth.granted", version="1.0", summary="Users of a test", api=(1, 1), implementation="svc_granted",
    needs=("users",), auth_modes=("granted",),
)


class Granted(AuthMode):
    name = "granted"

    def bind(self, context):
        from svc_users.api import RightsCache

        bound = Granted()
        bound.database = context.database
        bound.rights = RightsCache(context.database)
        return bound

    def authenticate(self, credentials):
        from svc_users.api import find_user_by_name, groups_of

        if credentials.value == "root":
            return ROOT_IDENTITY
        system = self.database.system()
        user = find_user_by_name(system, credentials.value or "")
        if user is None or not user.is_active:
            raise AuthRequired("There is no such user.")
        groups = groups_of(system, user)
        return Identity(user.user_id, user.username, groups=groups, rights=self.rights.of(groups, system))


@hookimpl
def svc_register_auth_modes(auth_modes):
    auth_modes.add(Granted())
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two workers, where a token is a username."""
    distributions = DistributionFactory(tmp_path_factory.mktemp("granted"), in_process=False)
    distributions.install(
        "svc-auth-granted",
        modules={"svc_granted": GRANTED},
        entry_points={"auth.granted": "svc_granted:PLUGIN"},
    )
    database = tmp_path_factory.mktemp("served") / "served.svcdb"
    running = Server(database, environment=distributions.environment())
    running.start_with(
        "-D", str(database), "--auth", "granted", "--port", str(free_port()), "--workers", "2",
        "--plugins", "auth.granted,files,users",
    )  # fmt: skip
    yield running
    running.close()


@pytest.fixture
def root(server: Server) -> Iterator[Caller]:
    """A connection of root's, who has stored a file."""
    with Caller(server.url, "root") as client:
        client.store("/docs/a", b"secret")
        yield client


class Caller(Client):
    """A connection whose requests carry a token."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url)
        self._credentials = {"Authorization": f"Bearer {token}"}

    def request(self, method, target, body=None, headers=None, **options):
        return super().request(method, target, body, {**self._credentials, **(headers or {})}, **options)

    def ask(self, method: str, target: str, value: object = None) -> dict[str, Any]:
        """Sends JSON and returns the answer, which is a success."""
        answer = self.send_json(method, target, value) if value is not None else self.request(method, target)
        assert answer.status in (200, 201), answer.body
        found: dict[str, Any] = answer.json()
        return found


def everywhere(server: Server, name: str) -> set[int]:
    """The statuses of one read that many connections ask for at the same time, each of its own."""
    statuses: list[int] = []

    def read() -> None:
        with Caller(server.url, name) as client:
            statuses.append(client.get(files("/docs/a")).status)

    threads = [threading.Thread(target=read) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == CLIENTS
    return set(statuses)


def test_a_change_counts_with_the_next_request_on_every_worker(server: Server, root: Caller) -> None:
    ann = root.ask("POST", "/system/users", {"username": "ann", "tags": ["night"]})["user_id"]
    root.ask("POST", "/system/groups", {"name": "staff"})
    root.ask("POST", "/system/groups", {"name": "owls"})
    assert everywhere(server, "ann") == {403}
    for _ in range(ROUNDS):
        given = {"path": "/docs", "group": f"user:{ann}", "allow": "-r------"}
        grant = root.ask("POST", "/system/grants", given)["grant_id"]
        assert everywhere(server, "ann") == {200}
        root.ask("POST", "/system/grants", {**given, "allow": "--------", "deny": "-r------"})
        assert everywhere(server, "ann") == {403}
        root.ask("DELETE", f"/system/grants/{grant}")
        root.ask("POST", "/system/grants", {"path": "/", "group": "staff", "allow": "-r------"})
        assert everywhere(server, "ann") == {403}
        root.ask("PATCH", "/system/groups/staff", {"add_members": [ann]})
        assert everywhere(server, "ann") == {200}
        root.ask("PATCH", "/system/groups/staff", {"remove_members": [ann]})
        assert everywhere(server, "ann") == {403}
        root.ask("POST", "/system/grants", {"path": "/docs/a", "group": "owls", "allow": "-r------"})
        root.ask("PATCH", "/system/groups/owls", {"tags": ["night"]})
        assert everywhere(server, "ann") == {200}
        root.ask("DELETE", f"/system/users/{ann}")
        assert everywhere(server, "ann") == {401}
        root.ask("PATCH", f"/system/users/{ann}", {"is_active": True})
        assert everywhere(server, "ann") == {200}
        root.ask("PATCH", "/system/groups/owls", {"tags": []})
        assert everywhere(server, "ann") == {403}


def test_a_group_that_is_deleted_lets_nobody_in_and_made_again_neither(server: Server, root: Caller) -> None:
    eve = root.ask("POST", "/system/users", {"username": "eve"})["user_id"]
    for _ in range(ROUNDS):
        root.ask("POST", "/system/groups", {"name": "crew", "members": [eve]})
        assert everywhere(server, "eve") == {403}
        root.ask("POST", "/system/grants", {"path": "/docs", "group": "crew", "allow": "-r------"})
        assert everywhere(server, "eve") == {200}
        root.ask("DELETE", "/system/groups/crew")
        assert everywhere(server, "eve") == {403}
        root.ask("POST", "/system/groups", {"name": "crew", "members": [eve]})
        assert everywhere(server, "eve") == {403}
        root.ask("DELETE", "/system/groups/crew")
