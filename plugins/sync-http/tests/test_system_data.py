"""Users, keys, grants and settings on nodes that are real servers: what one has revoked, no other accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from svc_sync.descriptor import PLUGIN

from svc import Database
from svc.plugin import read_settings
from svc_testing import Server

from .conftest import Cluster, ask, bearer, put, root_key, wait_until  # noqa: TID252

Headers = dict[str, str]


class Pair(NamedTuple):
    """Two nodes, and root, who is the same on both."""

    a: Server
    b: Server
    root: Headers

    def user(self, name: str) -> tuple[str, str]:
        """A new user of the first node, and a key."""
        made = ask(self.a, "POST", "/system/users", {"username": name}, status=201, headers=self.root)
        body = {"user_id": made["user_id"], "label": name}
        key = ask(self.a, "POST", "/auth/keys/admin", body, status=201, headers=self.root)
        return made["user_id"], key["key"]

    def let_read(self, user_id: str) -> str:
        """Grants the user to read; returns the id of the grant."""
        body = {"path": "/team", "group": f"user:{user_id}", "allow": "-r--l---"}
        found: str = ask(self.a, "POST", "/system/grants", body, status=201, headers=self.root)["grant_id"]
        return found

    def exchange(self) -> None:
        done = ask(self.a, "POST", "/sync/trigger", headers=self.root)
        assert [one["ok"] for one in done["results"]] == [True], done


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    cluster = Cluster(Path(tmp_path_factory.mktemp("pair")))
    with cluster.stack:
        a = cluster.start("a", auth="self-contained")
        key, root = root_key(a), bearer(a)
        put(a, "/team/x.txt", b"1", **root)
        b = cluster.start("b", "--workers", "2", "--join", a.url, "--join-token", key, auth="self-contained")
        wait_until(lambda: b.request("GET", "/files/team/x.txt", headers=root).status == 200, "the copy")
        wait_until(lambda: b'is_copying":false' in status(b, root), "the first copy is complete")
        yield Pair(a, b, root)


def status(server: Server, headers: Headers) -> bytes:
    return server.request("GET", "/sync/status", headers=headers).body


def reads(server: Server, headers: Headers) -> int:
    return server.request("GET", "/files/team/x.txt", headers=headers).status


def test_a_key_of_one_node_is_good_at_all_until_it_is_revoked(pair: Pair) -> None:
    user_id, key = pair.user("ann")
    pair.let_read(user_id)
    pair.exchange()
    ann = bearer(pair.b, key)
    assert seen_by_workers(pair.b, ann) == {200}
    assert reads(pair.a, ann) == 200
    [shown] = [
        one for one in ask(pair.b, "GET", "/auth/keys", headers=pair.root) if one["user_id"] == user_id
    ]
    ask(pair.a, "DELETE", f"/auth/keys/{shown['key_id']}", headers=pair.root)
    pair.exchange()
    assert seen_by_workers(pair.b, ann) == {401}
    ask(pair.b, "POST", "/auth/token", {"api_key": key}, status=401)


def test_a_deactivated_user_is_refused_by_all(pair: Pair) -> None:
    user_id, key = pair.user("bob")
    pair.let_read(user_id)
    pair.exchange()
    bob = bearer(pair.b, key)
    assert seen_by_workers(pair.b, bob) == {200}
    ask(pair.a, "DELETE", f"/system/users/{user_id}", headers=pair.root)
    pair.exchange()
    assert seen_by_workers(pair.b, bob) == {401}


def test_a_removed_grant_gives_nothing_at_any_node(pair: Pair) -> None:
    user_id, key = pair.user("eve")
    grant = pair.let_read(user_id)
    pair.exchange()
    eve = bearer(pair.b, key)
    assert seen_by_workers(pair.b, eve) == {200}
    ask(pair.b, "DELETE", f"/system/grants/{grant}", headers=pair.root)
    pair.exchange()
    assert seen_by_workers(pair.b, eve) == {reads(pair.a, eve)} == {403}


def test_snapshots_and_forks_are_read_at_every_node(pair: Pair) -> None:
    made = ask(
        pair.a,
        "POST",
        "/versions/snapshots",
        {"name": "s", "metadata": {"why": "test"}},
        201,
        headers=pair.root,
    )
    ask(pair.b, "POST", "/versions/forks", {"name": "f"}, 201, headers=pair.root)
    put(pair.b, "/team/x.txt?fork=f", b"of the fork", **pair.root)
    put(pair.a, "/team/x.txt", b"2", **pair.root)
    pair.exchange()
    shown = ask(pair.b, "GET", "/versions/snapshots/s", headers=pair.root)
    assert (shown["root_hash"], shown["metadata"]) == (made["root_hash"], {"why": "test"})
    assert shown["created_at"] == made["created_at"]
    for server, which in ((pair.b, "snapshot=s"), (pair.a, "fork=f"), (pair.a, "snapshot=s")):
        read = server.request("GET", f"/files/team/x.txt?{which}", headers=pair.root)
        assert read.body == (b"of the fork" if which == "fork=f" else b"1")
    ask(pair.a, "DELETE", "/versions/forks/f", headers=pair.root)
    ask(pair.b, "DELETE", "/versions/snapshots/s", headers=pair.root)
    pair.exchange()
    ask(pair.a, "GET", "/versions/snapshots/s", status=404, headers=pair.root)
    ask(pair.b, "GET", "/versions/forks/f", status=404, headers=pair.root)


def test_settings_and_plugins_are_those_of_the_cluster(pair: Pair) -> None:
    ask(pair.a, "PUT", "/system/lifecycle", {"snapshot_writes_enabled": False}, headers=pair.root)
    assert ask(pair.a, "GET", "/system/stats", headers=pair.root)
    ask(pair.b, "POST", "/system/plugins/metrics/disable", headers=pair.root)
    settings = {"degraded_seconds": 77.0}
    ask(pair.a, "PUT", "/system/plugins/sync/configuration", settings, headers=pair.root)
    pair.exchange()
    ask(pair.a, "GET", "/system/stats", status=404, headers=pair.root)
    assert [degraded_seconds(one) for one in (pair.a, pair.b)] == [77.0, 300.0]
    assert ask(pair.b, "GET", "/system/lifecycle", headers=pair.root)["snapshot_writes_enabled"] is False


def seen_by_workers(server: Server, headers: Headers) -> set[int]:
    """What the workers answer, each asked often enough: they remember who a token is of."""
    return {reads(server, headers) for _ in range(10)}


def degraded_seconds(server: Server) -> float:
    with Database(server.database_path, read_only=True) as database:
        found: float = read_settings(PLUGIN, database).degraded_seconds
        return found
