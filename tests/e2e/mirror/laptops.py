"""Laptops that mirror a directory of a real server: in this process, or by ``svc mirror``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from svc_mirror.client.local_tree import OWN, LocalTree
from svc_mirror.client.report import Report
from svc_mirror.client.server import Server
from svc_mirror.client.state import State
from svc_mirror.client.working import Options, run_once

from svc_client import Client

Tree = dict[str, str]
"""By path: ``file:`` and the content, ``link:`` and the target, or ``directory``."""


def tree_of(place: Path) -> Tree:
    """Everything below a directory of this machine but what is the mirror's own."""
    found: Tree = {}
    for above, directories, files in os.walk(place):
        directories[:] = [name for name in directories if name != OWN]
        for name in (*directories, *files):
            at = Path(above, name)
            path = str(at.relative_to(place))
            if at.is_symlink():
                found[path] = f"link:{os.path.normpath(at.relative_to(place).parent / os.readlink(at))}"
            elif at.is_dir():
                found[path] = "directory"
            else:
                found[path] = f"file:{at.read_text(errors='replace')}"
    return found


def tree_there(client: Client, directory: str) -> Tree:
    """Everything below a directory of the server."""
    found: Tree = {}

    def walk(path: str) -> None:
        for entry in client.files.list(path):
            place = entry.path[len(directory) + 1 :]
            if entry.entry_type == 3:
                found[place] = "directory"
                walk(entry.path)
            elif entry.entry_type == 8:
                found[place] = f"link:{str(entry.target)[len(directory) + 1 :]}"
            else:
                found[place] = f"file:{client.files.read(entry.path).decode(errors='replace')}"

    walk(directory)
    return found


class Laptop:
    """A mirror that runs in this process."""

    def __init__(self, place: Path, url: str, directory: str, *, token: str | None = None) -> None:
        self.place = place
        self.client = Client(url, token=token)
        self.directory = directory
        self.said: list[str] = []

    def run(self, options: Options = Options(), check: Callable[[], None] = lambda: None) -> Report:
        """One run of the mirror."""
        report = Report(self.said.append)
        tree = LocalTree(str(self.place))
        try:
            server = Server(self.client, self.directory)
            state = State(tree.state_location, {"server": server.url, "path": server.directory})
            try:
                run_once(tree, state, server, options, report, check=check)
            finally:
                state.close()
        finally:
            tree.close()
        return report

    @property
    def tree(self) -> Tree:
        return tree_of(self.place)

    def write(self, path: str, content: str) -> None:
        at = self.place / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(content)

    def remove(self, path: str) -> None:
        at = self.place / path
        shutil.rmtree(at) if at.is_dir() and not at.is_symlink() else at.unlink()
