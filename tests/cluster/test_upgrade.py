"""Nodes are upgraded one after the other: the former version and this one exchange both ways meanwhile.

``SVC_TEST_FORMER`` names the former version: a commit, or the program ``svc`` of it.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.history import State, read_state
from cluster.node import Node
from svc_blackbox.client import Client, files
from svc_blackbox.server import run_svc

FORMER = os.environ.get("SVC_TEST_FORMER", "")
ROOT = Path(__file__).parents[2]
AGREEMENT_S = 300.0
LARGE = os.urandom(700_000)

pytestmark = [
    pytest.mark.skipif(not FORMER, reason="SVC_TEST_FORMER names no version: tox -e upgrade"),
    pytest.mark.timeout(3_000),
]


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The program of the former version."""
    if Path(FORMER).is_file():
        yield FORMER
        return
    place = tmp_path_factory.mktemp("former") / "svc"
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--detach", "--quiet", str(place), FORMER], check=True)
    try:
        environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        command = ["uv", "sync", "--quiet", "--frozen", "--no-default-groups", "--project", str(place)]
        subprocess.run(command, check=True, env=environment, timeout=2_000)
        yield str(place / ".venv" / "bin" / "svc")
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


class Nodes:
    """Nodes that reach each other without anything between."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.all: list[Node] = []

    def start(self, name: str, program: str | None) -> Node:
        """Starts a node by a program; by that of this version without one."""
        node = Node(name, self._directory, has_address=True)
        node.server.program = program
        self.all.append(node)
        node.start()
        return node

    def upgrade(self, node: Node) -> None:
        """Stops a node and starts it by this version."""
        node.stop()
        node.server.program = None
        node.start()

    def agree(self) -> State:
        """Waits until all show the same, and returns it."""
        deadline = time.monotonic() + AGREEMENT_S
        while True:
            states = [with_client(node, read_state) for node in self.all]
            if all(state == states[0] for state in states):
                return states[0]
            assert time.monotonic() < deadline, states
            time.sleep(0.2)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path)
    yield made
    for node in made.all:
        node.close()


def with_client(node: Node, act: Callable[[Client], Any]) -> Any:
    with node.client() as client:
        return act(client)


def join(node: Node, member: Node) -> None:
    with node.client() as client:
        response = client.post("/sync/enter", {"address": f"http://127.0.0.1:{member.port}"})
        assert response.status == 200, response.body
        deadline = time.monotonic() + AGREEMENT_S
        while client.get("/sync/status").json()["is_copying"]:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def write(node: Node, turn: int) -> None:
    """All that is exchanged: files, directories, moves, deletions, restores, snapshots, forks, users."""
    name = f"{node.name}-{turn}"
    with node.client() as client:
        for number in range(5):
            client.store(f"{name}/{number}.txt", f"{name} {number}".encode())
        client.store(f"{name}/large", LARGE + name.encode())
        client.store("shared.txt", name.encode())
        assert client.delete(files(f"{name}/0.txt")).status == 200
        assert client.send_json("PATCH", files(f"{name}/1.txt"), {"to": f"/{name}/moved.txt"}).status == 200
        assert client.post("/files/mkdir", {"path": f"/{name}/empty"}).status == 201
        assert client.post("/versions/snapshots", {"name": name}).status == 201
        assert client.post("/versions/forks", {"name": name}).status == 201
        client.put_file(f"{name}/in-fork.txt", b"x", fork=name)
        client.store(f"{name}/2.txt", b"to be restored")
        body = {"snapshot": name}
        assert client.post(f"/versions/file-restore/{name}/2.txt", body).status == 200
        assert client.post("/system/users", {"username": name}).status == 201


def check(nodes: Nodes, *names: str) -> None:
    state = nodes.agree()
    for name in names:
        assert f"/{name}/moved.txt" in state.files
        assert f"/{name}/0.txt" not in state.files
        assert name in state.snapshots
        for node in nodes.all:
            with node.client() as client:
                assert client.read(f"{name}/large") == LARGE + name.encode()
                assert client.read(f"{name}/2.txt") == f"{name} 2".encode()
                assert client.get(files(f"{name}/in-fork.txt"), fork=name).status == 200
                users = client.get("/system/users").body
                assert f'"{name}"'.encode() in users


def resolve_all(node: Node) -> None:
    with node.client() as client:
        for one in client.get("/sync/conflicts", limit=1000).json()["conflicts"]:
            target = "/sync/conflicts" + files(one["path"])[6:]
            assert client.post(target, {"pick": "winner"}).status in (200, 404)


@pytest.mark.parametrize("first_is_former", [True, False])
def test_a_cluster_is_upgraded_node_by_node(nodes: Nodes, former: str, first_is_former: bool) -> None:
    a = nodes.start("a", former if first_is_former else None)
    write(a, 1)
    b = nodes.start("b", None if first_is_former else former)
    join(b, a)
    write(b, 1)
    write(a, 2)
    check(nodes, "a-1", "b-1", "a-2")
    c = nodes.start("c", former)
    join(c, b)
    for node in (a, b, c):
        write(node, 3)
    check(nodes, "a-3", "b-3", "c-3")
    resolve_all(c)
    assert nodes.agree().losers == {}
    for node in (a, b, c):
        if node.server.program is not None:
            write(node, 4)
            nodes.upgrade(node)
            write(node, 5)
            check(nodes, f"{node.name}-4", f"{node.name}-5")
    for node in nodes.all:
        node.stop()
        run_svc("verify", "-D", node.file)
