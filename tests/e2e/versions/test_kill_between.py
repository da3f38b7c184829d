"""A server that is killed while snapshots, forks, merges and restores go on."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from svc_blackbox.client import Client, files
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    PLURAL,
    head_version,
    list_forks,
    list_snapshots,
    make_fork,
    make_snapshot,
    merge,
    tree,
)


@dataclass
class Worker:
    """One client and what it was told; ``doubtful`` holds what it had asked for when the server died."""

    number: int
    round: int = 0
    snapshots: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    fork_files: dict[str, bytes] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)

    def run(self, url: str) -> None:
        """Works until the server is gone."""
        random_ = random.Random(self.number)
        fork = f"fork{self.number}"
        with Client(url) as client:
            for step in range(10_000):
                name = f"{self.number}-{self.round}-{step}"
                self.doubtful = {name}
                try:
                    self._step(client, random_, name, fork)
                except (OSError, http.client.HTTPException):
                    return

    def _step(self, client: Client, random_: random.Random, name: str, fork: str) -> None:
        path = f"/{self.number}/{name}"
        choice = random_.random()
        if choice < 0.35:
            self.doubtful.add(path)
            assert client.put_file(path, name.encode(), fork=fork).status == 201
            self.fork_files[path] = name.encode()
        elif choice < 0.6:
            client.store(f"/head/{name}", b"x")
            response = client.post(PLURAL.snapshot_routes[0], {"name": name})
            assert response.status in (200, 201), response.body
            if response.status == 201:
                self.snapshots[name] = response.json()["root_hash"]
        elif choice < 0.7 and self.snapshots:
            victim = random_.choice(sorted(self.snapshots))
            self.doubtful.add(victim)
            assert client.delete(PLURAL.snapshot(victim)).status == 200
            del self.snapshots[victim]
            self.deleted.add(victim)
        elif choice < 0.85:
            assert merge(client, fork, "HEAD", "theirs").status == 200
        else:
            assert client.post(PLURAL.restore_path("/restored"), {"snapshot": "first"}).status in (200, 409)


def test_what_was_acknowledged_is_there_and_nothing_is_half_done(new_server: Callable[..., Server]) -> None:
    server = new_server("killed", "--workers", "2")
    client = server.client()
    client.store("/restored", b"first")
    first = make_snapshot(client, "first")
    workers = [Worker(number) for number in range(4)]
    for worker in workers:
        make_fork(client, f"fork{worker.number}")
    for round_ in range(2):
        threads = [threading.Thread(target=worker.run, args=(server.url,)) for worker in workers]
        for thread in threads:
            thread.start()
        time.sleep(0.8 + 0.3 * round_)
        server.kill()
        for thread in threads:
            thread.join()
        client = server.start().client()
        check(client, workers, first["root_hash"])
        for worker in workers:
            # What was in doubt has been looked at; from here on it is what the server says.
            worker.snapshots = {
                item["name"]: item["root_hash"]
                for item in list_snapshots(client)
                if item["name"].startswith(f"{worker.number}-")
            }
            worker.fork_files = {
                path: path.rsplit("/", 1)[1].encode()
                for path in tree(client, fork=f"fork{worker.number}")
                if path.startswith(f"/{worker.number}/")
            }
            worker.round += 1
    assert server.stop() == 0
    run_svc("verify", "-D", server.database)


def check(client: Client, workers: list[Worker], first: str) -> None:
    found = {item["name"]: item for item in list_snapshots(client)}
    assert found["first"]["root_hash"] == first
    assert {fork["name"] for fork in list_forks(client)} == {f"fork{worker.number}" for worker in workers}
    for item in found.values():
        assert client.head("/files/", version=item["root_hash"]).status == 200
        assert item["kind"] == ("automatic" if item["name"].startswith("pre-restore-") else "manual")
    for worker in workers:
        for name, root in worker.snapshots.items():
            if name not in worker.doubtful:
                assert found[name]["root_hash"] == root
        assert not {name for name in worker.deleted if name in found} - worker.doubtful
        for path, content in worker.fork_files.items():
            assert client.read(path, fork=f"fork{worker.number}") == content
    assert client.get(files("/restored")).status == 200
    assert head_version(client)
