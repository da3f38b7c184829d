"""``svc snapshot``, ``svc fork``, ``svc merge``, ``svc restore`` as the shell sees them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import Database
from svc.plugins import Plugins, disable, initialize
from svc_cli import main

from ..conftest import contents, write  # noqa: TID252


@dataclass(frozen=True)
class Result:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def path(tmp_path: Path, plugins: Plugins) -> Path:
    """A database file with a history."""
    path = tmp_path / "cli.svcdb"
    with Database(path) as database:
        initialize(database, plugins)
        write(database, {"/a": "1", "/d/x": "1"})
    return path


@pytest.fixture
def run(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``svc`` with words on the database; ``check`` is the exit code that is expected."""
    monkeypatch.setenv("SVC_PLUGINS", "versions")
    monkeypatch.setenv("SVC_DATABASE", str(path))

    def run_command(*words: object, check: int = 0) -> Result:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["svc"])
            with pytest.raises(SystemExit) as ended:
                main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert ended.value.code == check, f"svc {words} exited with {ended.value.code}: {err}"
        return Result(int(ended.value.code or 0), out, err)

    return run_command


def change(path: Path, files: dict[str, str | None], fork: str | None = None) -> None:
    with Database(path) as database:
        write(database, files, fork)


def files(path: Path, fork: str | None = None) -> dict[str, str]:
    with Database(path) as database:
        return contents(database, fork)


def test_snapshots_are_made_listed_renamed_restored_and_deleted(run: Run, path: Path) -> None:
    assert run("snapshot", "list").out == ""
    made = run("snapshot", "create", "one", "--metadata", '{"k": 1}', "--json").json
    assert (made["name"], made["metadata"], made["created"]) == ("one", {"k": 1}, True)
    assert run("snapshot", "create", "two", "--json").json["created"] is False
    assert "is of the same version" in run("snapshot", "create", "two").out
    assert "exists" in run("snapshot", "create", "one", check=4).err
    change(path, {"/a": "2"})
    assert "created snapshot two" in run("snapshot", "create", "two").out
    lines = run("snapshot", "list").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["two", "one"]
    assert re.fullmatch(r"one +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +[0-9a-f]{12} +manual", lines[1])
    run("snapshot", "rename", "one", "first")
    assert "snapshot pre-restore-" in run("snapshot", "restore", "first").out
    assert files(path)["/a"] == "1"
    assert "already" in run("snapshot", "restore", "first").out
    assert len(run("snapshot", "list", "--json").json) == 3
    assert run("snapshot", "delete", "first", "--json").json["deleted"] is True
    run("snapshot", "delete", "first", check=3)
    run("snapshot", "create", "x" * 201, check=2)
    run("snapshot", "create", "x", "--metadata", "[1]", check=2)
    run("snapshot", "create", "x", "--fork", "a", "--from", "b", check=2)


def test_forks_are_made_listed_promoted_and_abandoned(run: Run, path: Path) -> None:
    run("snapshot", "create", "one")
    change(path, {"/a": "2"})
    made = run("fork", "create", "draft", "--base", "one", "--json").json
    assert made["root_hash"] == run("snapshot", "list", "--json").json[0]["root_hash"]
    assert run("fork", "list").out.splitlines()[1].startswith("draft  ")
    change(path, {"/a": "3"}, "draft")
    assert "HEAD has moved" in run("fork", "promote", "draft", check=4).err
    assert run("fork", "promote", "draft", "--force", "--json").json["promoted"] is True
    assert files(path)["/a"] == "3"
    run("snapshot", "create", "of-fork", "--fork", "draft")
    gone = run("fork", "abandon", "draft", "--json").json
    assert run("fork", "list", "--json").json == []
    assert run("fork", "list", "--abandoned").out.split()[-1] == gone["root_hash"]
    assert run("fork", "list", "--abandoned", "--json").json[0]["name"] == "draft"
    run("fork", "create", "back", "--base", gone["root_hash"])
    run("fork", "abandon", "back")
    run("fork", "abandon", "draft", check=3)


def test_a_merge_prints_what_it_did_or_what_stands_in_its_way(run: Run, path: Path) -> None:
    run("fork", "create", "f")
    change(path, {"/a": "head"})
    change(path, {"/a": "fork", "/new": "x"}, "f")
    refused = run("merge", "f", check=4)
    assert refused.out.split() == ["modify_modify", "/a"]
    assert run("merge", "f", "--json", check=4).json["conflict_count"] == 1
    run("merge", "f", "--take", "theirs", "/nothing", check=2)
    taken = run("merge", "f", "--take", "both", "/a", "--dry-run").out
    assert taken == "would merge fork f into HEAD: 2 added, 0 modified, 0 deleted\n"
    dry = run("merge", "f", "--strategy", "theirs", "--dry-run")
    assert dry.out == "would merge fork f into HEAD: 1 added, 1 modified, 0 deleted\n"
    assert files(path)["/a"] == "head"
    done = run("merge", "f", "HEAD", "--strategy", "theirs", "-m", "why", "--json").json
    assert done["changes"] == {"added": 1, "modified": 1, "deleted": 0}
    assert files(path)["/a"] == "fork"
    run("merge", "none", check=3)
    run("merge", "f", "--take", "mine", "/a", check=2)
    run("merge", "f", "--strategy", "guess", check=2)


def test_a_path_is_restored_from_whatever_names_a_version(run: Run, path: Path) -> None:
    run("snapshot", "create", "one")
    with Database(path) as database:
        version = database.head().root.hex()
    for name in ("one", version, "snapshots/one"):
        change(path, {"/a": f"not {name}", "/d/x": None})
        done = run("restore", "/a", "--from", name, "--json").json
        assert done["path"] == "/a"
        assert files(path)["/a"] == "1"
        assert "restored /d from" in run("restore", "d", "--from", name).out
        assert files(path)["/d/x"] == "1"
        change(path, {"/d/x": "2"})
    run("restore", "/none", "--from", "one", check=3)
    run("restore", "/.svc-system/x", "--from", "one", check=3)
    run("restore", "/", "--from", "one", check=2)
    run("restore", "/a", "--from", "nothing", check=3)
    # Without a version it asks the plugin that keeps what was deleted, which is not here.
    run("restore", "/a", check=3)


def test_a_database_without_the_plugin_is_refused(
    run: Run, path: Path, tmp_path: Path, plugins: Plugins
) -> None:
    with Database(path) as database:
        disable(database, plugins, "versions")
    run("snapshot", "list", check=11)
    run("fork", "list", "-D", tmp_path / "none.svcdb", check=3)
