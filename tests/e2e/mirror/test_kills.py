"""A mirror that is killed at any step: the next run makes both sides alike, and nothing is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.mirror.laptops import Laptop, tree_there
from svc_blackbox.server import Server
from svc_client import Client
from svc_client.transport import Transport

STEPS = ("rename", "link", "unlink", "mkdir", "rmdir", "fsync", "symlink", "utime")
MOST_STEPS = 400
LARGE = "large " * 200_000
OTHER = LARGE[:600_000] + "changed" + LARGE[600_000:]


class Counted:
    """Calls of what a mirror does to its disk, its state and its server: the given one is its last."""

    def __init__(self, left: int) -> None:
        self.left = left

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return counted


class CountedDatabase:
    """A connection of SQLite whose transactions are steps too."""

    def __init__(self, counted: Counted, database: sqlite3.Connection) -> None:
        self._database = database
        self._commit = counted.wrap(database.execute)

    def execute(self, statement: str, *args: Any) -> Any:
        return (self._commit if statement == "COMMIT" else self._database.execute)(statement, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


def run_and_kill(laptop: Laptop, steps: int) -> bool:
    """Runs a mirror in a process of its own, killed after so many steps; returns whether it was."""
    child = os.fork()
    if not child:
        try:
            counted = Counted(steps)
            for name in STEPS:
                setattr(os, name, counted.wrap(getattr(os, name)))
            Transport.request = counted.wrap(Transport.request)  # type: ignore[method-assign]
            connect = sqlite3.connect
            sqlite3.connect = lambda *args, **kwargs: CountedDatabase(  # type: ignore[assignment, misc, return-value]
                counted, connect(*args, **kwargs)
            )
            Laptop(laptop.place, laptop.client.address.url, laptop.directory).run()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def change_both_sides(client: Client, laptop: Laptop) -> None:
    """Something of every kind: both sides store, replace, delete, and disagree."""
    directory = laptop.directory
    for path, content in (("there", "new"), ("both", "theirs"), ("large", OTHER), ("kind/file", "in it")):
        client.files.put(f"{directory}/{path}", content.encode())
    client.request("DELETE", f"/files{directory}/gone there")
    client.request("DELETE", f"/files{directory}/tree", query={"recursive": "true"})
    laptop.write("here", "new")
    laptop.write("new/deep/file", LARGE[:700_000])
    laptop.write("both", "mine")
    laptop.remove("gone here")
    laptop.remove("other")
    laptop.write("other/in it", "file")
    (laptop.place / "link").symlink_to("here")


@pytest.mark.timeout(300)
def test_whenever_it_is_killed_the_next_run_completes_it(tmp_path: Path, shared_server: Server) -> None:
    client = Client(shared_server.url)
    killed, step = True, 0
    while killed:
        directory = f"/mirror kills {step}"
        for path in ("both", "gone there", "gone here", "tree/a", "tree/b/c", "other"):
            client.files.put(f"{directory}/{path}", f"first {path}".encode())
        client.files.put(f"{directory}/large", LARGE.encode())
        laptop = Laptop(tmp_path / str(step), shared_server.url, directory)
        laptop.run()
        change_both_sides(client, laptop)
        killed = run_and_kill(laptop, step)
        laptop.run()
        here = laptop.tree
        assert here == tree_there(client, directory), step
        copies = {path: standing for path, standing in here.items() if "(conflict" in path}
        assert list(copies.values()) == ["file:mine"], (step, copies)
        for path in copies:
            del here[path]
        assert here == {
            "both": "file:theirs",
            "here": "file:new",
            "kind": "directory",
            "kind/file": "file:in it",
            "large": f"file:{OTHER}",
            "link": "link:here",
            "new": "directory",
            "new/deep": "directory",
            "new/deep/file": f"file:{LARGE[:700_000]}",
            "other": "directory",
            "other/in it": "file:file",
            "there": "file:new",
        }, step
        assert not list((laptop.place / ".svc-mirror" / "parts").iterdir())
        step += 1 if step < 12 else 3
    assert 40 < step < MOST_STEPS
