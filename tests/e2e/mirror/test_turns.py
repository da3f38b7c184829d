"""Two laptops and a server, changed and mirrored in random turns: all come to the same, and nothing is lost.

Lost is a content that somebody stored, that nobody replaced or deleted who had it before their eyes, and that
is nowhere at the end. ``SVC_TEST_MIRROR_SCALE`` and ``SVC_TEST_MIRROR_SEED`` say how much is tried.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from svc_mirror.client.working import Options

from e2e.mirror.laptops import Laptop, Tree, tree_there
from long_runs import Extent
from svc.errors import Conflict, NotFound, SvcError
from svc_blackbox.server import Server
from svc_client import Client

EXTENT = Extent("MIRROR")
PATHS = ["a", "b", "c", "d", "a/x", "a/y", "b/x", "b/c/x", "b/c/y", "d.txt", "é"]
TURNS = 14
MEANWHILE = 0.1
"""How often somebody changes something between two steps of a run."""


class Interrupted(Exception):
    pass


class World:
    """The three of them, and what nobody may lose."""

    def __init__(self, rng: random.Random, place: Path, url: str, directory: str) -> None:
        self.rng = rng
        self.client = Client(url)
        self.directory = directory
        self.laptops = [Laptop(place / name, url, directory) for name in ("one", "two")]
        for laptop in self.laptops:
            laptop.place.mkdir(parents=True)
        self.stored = 0
        self.kept: set[str] = set()

    def new_content(self) -> str:
        self.stored += 1
        content = f"content {self.stored}"
        if self.rng.random() < 0.1:
            content += " large" * 150_000
        self.kept.add(f"file:{content}")
        return content

    def gone(self, tree: Tree, path: str) -> None:
        """Somebody who has this tree before their eyes replaces or deletes what is at a path."""
        for at, standing in tree.items():
            if at == path or at.startswith(path + "/"):
                self.kept.discard(standing)

    def change_here(self) -> None:
        laptop, path = self.rng.choice(self.laptops), self.rng.choice(PATHS)
        at = laptop.place / path
        step = self.rng.random()
        tree = laptop.tree
        if not stands_free(tree, path):
            return
        if step < 0.25:
            if path in tree:
                self.gone(tree, path)
                laptop.remove(path)
        elif step < 0.35:
            other = self.rng.choice(PATHS)
            if path in tree and other not in tree and not other.startswith(path + "/"):
                with suppress(OSError):
                    (laptop.place / other).parent.mkdir(parents=True, exist_ok=True)
                    os.rename(at, laptop.place / other)
        elif step < 0.45:
            if path in tree and tree[path] != "directory":
                self.gone(tree, path)
                laptop.remove(path)
            at.mkdir(parents=True, exist_ok=True)
        elif step < 0.5:
            if path not in tree:
                at.parent.mkdir(parents=True, exist_ok=True)
                at.symlink_to(os.path.relpath(laptop.place / "elsewhere", at.parent))
        else:
            if path in tree:
                self.gone(tree, path)
                if tree[path] == "directory" or tree[path].startswith("link:"):
                    laptop.remove(path)
            laptop.write(path, self.new_content())

    def change_there(self) -> None:
        path = self.rng.choice(PATHS)
        tree = tree_there(self.client, self.directory)
        if not stands_free(tree, path):
            return  # through a link it would be written elsewhere
        with suppress(Conflict, NotFound):
            if self.rng.random() < 0.3:
                if path in tree:
                    name = f"/files{self.directory}/{path}"
                    self.client.request("DELETE", name, query={"recursive": "true"})
                    self.gone(tree, path)
                return
            if tree.get(path, "file:").startswith("file:"):
                content = self.new_content()
                try:
                    self.client.files.put(f"{self.directory}/{path}", content.encode())
                except SvcError:
                    self.kept.discard(f"file:{content}")
                    raise
                self.gone({path: tree.get(path, "")}, path)

    def mirror(self) -> None:
        laptop = self.rng.choice(self.laptops)
        left = self.rng.choice((3, 10, 30)) if self.rng.random() < 0.3 else 10_000

        def check() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Interrupted
            if self.rng.random() < MEANWHILE:
                self.change_here() if self.rng.random() < 0.5 else self.change_there()

        with suppress(Interrupted):
            laptop.run(Options(may_delete_much=True), check)

    def settle(self) -> None:
        for _ in range(6):
            reports = [laptop.run(Options(may_delete_much=True)) for laptop in self.laptops]
            if not any(report.done or report.needs_another_pass for report in reports):
                return
        pytest.fail(f"it does not come to rest: {[report.as_json() for report in reports]}")


def stands_free(tree: Tree, path: str) -> bool:
    """Whether nothing but directories stands above a path."""
    above = [path[:end] for end, letter in enumerate(path) if letter == "/"]
    return all(tree.get(one, "directory") == "directory" for one in above)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("turn", range(EXTENT.scaled(12)))
def test_all_come_to_the_same_and_nothing_is_lost(turn: int, tmp_path: Path, shared_server: Server) -> None:
    seed = (EXTENT.seed or 0) + turn
    rng = random.Random(seed)
    world = World(rng, tmp_path, shared_server.url, f"/mirror turns {seed}")
    world.client.files.put(f"{world.directory}/d", world.new_content().encode())
    for _ in range(TURNS):
        for _ in range(rng.randint(1, 4)):
            world.change_here() if rng.random() < 0.7 else world.change_there()
        if rng.random() < 0.8:
            world.mirror()
    world.settle()
    there = tree_there(world.client, world.directory)
    for laptop in world.laptops:
        assert sorted(set(laptop.tree.items()) ^ set(there.items())) == [], (seed, laptop.place)
    assert world.kept <= set(there.values()), (seed, world.kept - set(there.values()))
    shutil.rmtree(tmp_path)
