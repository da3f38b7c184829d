"""Commands of versions and history print the same for a database file and for the server of that file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import Database
from svc_cli import main
from svc_testing import start_server

Run = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True)
class Served:
    """A database file and the URL of its server."""

    path: Path
    url: str

    @property
    def places(self) -> tuple[str, str]:
        return str(self.path), self.url


def write(database: Database, files: dict[str, str], fork: str | None = None) -> None:
    """Puts each content at its path; one commit."""
    with database.transaction(ref="HEAD" if fork is None else f"forks/{fork}") as transaction:
        for path, content in files.items():
            transaction.put(tuple(path.strip("/").split("/")), content.encode())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("served") / "x.svcdb"
    with start_server(path, plugins=("history", "versions")) as server:
        place = Served(path, server.url)
        with Database(path) as database:
            write(database, {"/a": "one\n", "/d/x": "1", "/bin": "\0"})
            with database.transaction(actor="ann", message="why\nand more") as transaction:
                transaction.put(("a",), b"one\ntwo\n")
                transaction.delete(("d", "x"))
                transaction.mkdir(("new",))
        yield place


@pytest.fixture(scope="module")
def filled(served: Served) -> Served:
    for words in (
        ("snapshot", "create", "one", "--metadata", '{"k": "é"}'),
        ("fork", "create", "draft"),
        ("fork", "create", "gone"),
        ("fork", "abandon", "gone"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*words, "-D", served.url])
        assert not ended.value.code
    with Database(served.path) as database:
        write(database, {"/a": "one\n2\n", "/c": "3"})
        write(database, {"/a": "fork"}, "draft")
    return served


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on a file or a server; gives its exit code and what it printed."""
    monkeypatch.setenv("SVC_PLUGINS", "history,versions")

    def run_command(database: str, *words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["svc"])
            with pytest.raises(SystemExit) as ended:
                main([*words, "-D", database])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run_command


@pytest.mark.parametrize(
    "words",
    [
        "snapshot list",
        "snapshot list --json",
        "fork list",
        "fork list --json",
        "fork list --abandoned",
        "fork list --abandoned --json",
        "log",
        "log --json",
        "log -n 1",
        "log / -n 1 --json",
        "log /d",
        "log --fork draft --json",
        "show HEAD",
        "show HEAD --json",
        "show one --json",
        "history /a",
        "history /a --json",
        "history /a --commits",
        "history /a --commits --json",
        "history / --commits --json",
        "history /never --json",
        "blame /a",
        "blame /a --json",
        "blame /a --at one --json",
        "blame /",
        "blame / --json",
        "blame /bin --json",
    ],
)
def test_what_is_read(run: Run, filled: Served, words: str) -> None:
    of_file, of_server = (run(place, *words.split()) for place in filled.places)
    assert of_file[0] == 0, of_file
    assert of_server == of_file


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("snapshot create one", 4),
        ("snapshot create two --from nothing", 3),
        ("snapshot create two --fork none", 3),
        ("snapshot delete none", 3),
        ("snapshot rename none x", 3),
        ("snapshot restore none", 3),
        ("fork create draft", 4),
        ("fork create other --base nothing", 3),
        ("fork promote draft", 4),
        ("fork promote none", 3),
        ("fork abandon none", 3),
        ("merge none", 3),
        ("merge draft", 4),
        ("merge draft --json", 4),
        ("merge draft one", 2),
        ("restore /a --from nothing", 3),
        ("restore /none --from one", 3),
        ("restore / --from one", 2),
        ("log --fork none", 3),
        ("show nothing", 3),
        ("blame /none", 3),
        ("blame /a --at nothing", 3),
        ("blame /a --at forks/draft", 2),
        ("history /.svc-system", 3),
    ],
)
def test_what_is_refused(run: Run, filled: Served, words: str, code: int) -> None:
    of_file, of_server = (run(place, *words.split()) for place in filled.places)
    assert of_file[0] == code, of_file
    assert of_server == of_file
    assert "force=true" not in of_file[2]


def test_what_is_written(run: Run, filled: Served) -> None:
    def story(place: str) -> list[Any]:
        tag = "xf-" if place == str(filled.path) else "xs-"
        told = []
        for words in (
            f"snapshot create {tag}1",
            f"snapshot create {tag}2 --from one --json",
            f"snapshot create {tag}3 --json",
            f"snapshot rename {tag}1 {tag}4 --json",
            f"fork create {tag}fork --base one",
            f"fork create {tag}other --json",
            f"merge {tag}other {tag}fork --dry-run",
            f"merge snapshots/one {tag}other --json",
            f"merge {tag}fork --strategy ours",
            f"fork promote {tag}fork --force",
            f"fork promote {tag}fork --json",
            f"restore /a --from {tag}4",
            "restore a --from one --json",
            f"snapshot restore {tag}4",
            f"snapshot restore {tag}4 --json",
            f"fork abandon {tag}fork",
            f"fork abandon {tag}other --json",
            f"snapshot delete {tag}4 --json",
        ):
            code, out, err = run(place, *words.split())
            assert code == 0, (words, err)
            text = re.sub(r"[0-9a-f]{64}", "<hash>", out).replace(tag, "")
            text = re.sub(r"\d{13}(-\w+)?", "<time>", text)
            # Who holds the file has no name; who is let in by a server has one.
            told.append(re.sub(r'"created_by": .*', '"created_by"', text))
        return told

    of_file, of_server = map(story, filled.places)
    assert of_server == of_file
