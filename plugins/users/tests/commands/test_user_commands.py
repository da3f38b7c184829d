"""``svc user``, ``svc group``, ``svc grant``, ``svc access``: the same against a file and a server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import ROOT_USER_ID, Database
from svc.plugins import Plugins, disable, initialize
from svc_cli import main
from svc_testing import Server, start_server

from ..conftest import NOBODY  # noqa: TID252


@dataclass(frozen=True)
class Result:
    """What a command left."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests of this module; each uses names of its own."""
    path = tmp_path_factory.mktemp("server") / "served.svcdb"
    with start_server(path, "--workers", "2", plugins=("users",)) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path, plugins: Plugins) -> Path:
    """A database file."""
    path = tmp_path / "cli.svcdb"
    with Database(path) as database:
        initialize(database, plugins)
    return path


@pytest.fixture(params=["file", "server"])
def where(request: pytest.FixtureRequest) -> str:
    """What --database names: a file, and a server's URL."""
    if request.param == "file":
        return str(request.getfixturevalue("file"))
    running: Server = request.getfixturevalue("server")
    return running.url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``svc`` with words; ``check`` is the exit code that is expected."""
    monkeypatch.setenv("SVC_PLUGINS", "users")

    def run_command(*words: object, check: int = 0) -> Result:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["svc"])
            with pytest.raises(SystemExit) as ended:
                main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert ended.value.code == check, f"svc {words} exited with {ended.value.code}: {err}"
        return Result(out, err)

    return run_command


def test_users_are_added_listed_shown_changed_and_deactivated(run: Run, where: str) -> None:
    on = ("-D", where)
    made = run("user", "add", "Ann", "--email", "a@b.c", "--tag", "x", "--tag", "y", "--json", *on).json
    assert (made["username"], made["tags"]) == ("Ann", ["x", "y"])
    assert run("user", "add", "bob", *on).out.startswith("added user bob (")
    assert "exists" in run("user", "add", "ANN", *on, check=4).err
    assert "username" in run("user", "add", "", *on, check=2).err
    names = [line.split()[0] for line in run("user", "list", *on).out.splitlines()[1:]]
    assert {"Ann", "bob"} <= set(names)
    assert names == sorted(names, key=str.casefold)
    assert [one["username"] for one in run("user", "list", "--tag", "x", "--json", *on).json] == ["Ann"]
    shown = run("user", "show", "ann", *on).out
    assert made["user_id"] in shown
    assert "active" in shown
    assert run("user", "show", made["user_id"].upper(), "--json", *on).json == made
    run("user", "set", "ann", "--username", "Eve", "--email", "", "--no-tags", *on)
    changed = run("user", "show", "eve", "--json", *on).json
    assert (changed["username"], changed["email"], changed["tags"]) == ("Eve", None, [])
    run("user", "set", "eve", "--tag", "z", *on)
    assert run("user", "show", "eve", "--json", *on).json["tags"] == ["z"]
    assert "deactivated user Eve" in run("user", "deactivate", "eve", *on).out
    assert [one["username"] for one in run("user", "list", "--inactive", "--json", *on).json] == ["Eve"]
    assert run("user", "activate", "eve", "--json", *on).json["is_active"] is True
    assert "bob" in run("user", "list", "--active", *on).out
    run("user", "show", "none", *on, check=3)
    run("user", "show", NOBODY, *on, check=3)
    run("user", "deactivate", ROOT_USER_ID, *on, check=4)
    run("user", "set", "eve", *on, check=2)
    run("user", "set", "eve", "--tag", "x", "--no-tags", *on, check=2)


def test_groups_are_added_listed_shown_changed_and_deleted(run: Run, where: str) -> None:
    on = ("-D", where)
    ids = [run("user", "add", f"g{number}", "--json", *on).json["user_id"] for number in range(3)]
    made = run(
        "group", "add", "Staff", "--member", "g0", "--member", ids[1], "--tag", "t", "--json", *on
    ).json
    assert (made["members"], made["tags"]) == (sorted(ids[:2]), ["t"])
    run("group", "add", "staff", *on, check=4)
    run("group", "add", "a/b", *on, check=2)
    run("group", "add", "other", "--member", "none", *on, check=3)
    assert re.search(r"^Staff +2 members +t$", run("group", "list", *on).out, re.MULTILINE)
    assert "Staff" in [one["name"] for one in run("group", "list", "--json", *on).json]
    shown = run("group", "show", "staff", *on).out
    assert "group Staff, 2 members" in shown
    assert "tagged t" in shown
    assert ids[0] in shown
    run("group", "add-member", "staff", "g2", *on)
    run("group", "remove-member", "staff", "g0", ids[1], *on)
    assert run("group", "show", "staff", "--json", *on).json["members"] == [ids[2]]
    assert run("user", "show", "g2", "--json", *on).json["groups"] == ["Staff", f"user:{ids[2]}"]
    run("group", "set", "staff", "--no-tags", *on)
    assert run("group", "show", "staff", "--json", *on).json["tags"] == []
    run("group", "set", "staff", *on, check=2)
    assert run("group", "delete", "staff", *on).out == "deleted group Staff and its grants\n"
    run("group", "show", "staff", *on, check=3)
    run("group", "delete", "staff", "--json", *on, check=3)


def test_paths_are_granted_listed_explained_and_taken_back(run: Run, where: str) -> None:
    on = ("-D", where)
    user_id = run("user", "add", "reader", "--json", *on).json["user_id"]
    run("group", "add", "readers", "--member", "reader", *on)
    made = run("grant", "add", "/docs", "--group", "READERS", "--allow", "lr", "--json", *on).json
    assert (made["group"], made["allow"], made["created"]) == ("readers", "-r--l---", True)
    assert "replaced" in run("grant", "add", "docs", "--group", "readers", "--allow", "-r--l---", *on).out
    run("grant", "add", "/docs", "--user", "reader", "--deny", "r", "--pattern", "**/*.key", *on)
    assert len(run("grant", "list", "--path", "/docs", "--json", *on).json) == 2
    own = run("grant", "list", "--user", "reader", "--json", *on).json
    assert [one["group"] for one in own] == [f"user:{user_id}"]
    lines = run("grant", "list", "--group", "readers", *on).out.splitlines()[1:]
    assert len(lines) == 1
    assert lines[0].split()[:4] == ["/docs", "-", "readers", "-r--l---"]
    explained = run("access", "/docs/a/x.key", "--as", "reader", *on).out
    assert explained.startswith("reader at /docs/a/x.key: ----l---\n")
    assert f"denied at /docs to user:{user_id}; deny beats allow" in explained
    assert "allowed at /docs to readers" in explained
    assert "no grant says anything" in explained
    left_out = run("access", "/docs/a", "--as", "reader", *on).out
    assert "leaves this path out" in left_out
    assert run("access", "/docs/a", "--as", "root", "--json", *on).json["permissions"] == "crudlify"
    assert "took back /docs" in run("grant", "remove", own[0]["grant_id"], *on).out
    run("grant", "remove", own[0]["grant_id"], *on, check=3)
    run("access", "/docs", "--as", "none", *on, check=3)
    run("access", "/.svc-system/users", "--as", "reader", *on, check=3)
    run("access", "/../x", "--as", "reader", *on, check=2)
    run("grant", "add", "/docs", "--allow", "r", *on, check=2)
    run("grant", "add", "/docs", "--group", "a", "--user", "b", "--allow", "r", *on, check=2)
    run("grant", "add", "/docs", "--group", "readers", "--allow", "rx", *on, check=2)
    run("grant", "add", "/docs", "--group", "readers", *on, check=2)
    run("grant", "add", "/docs", "--group", "none", "--allow", "r", *on, check=3)
    run("grant", "add", "/.svc-system", "--group", "readers", "--allow", "r", *on, check=3)


def test_control_codes_in_names_do_not_reach_the_terminal(run: Run, file: Path) -> None:
    run("user", "add", "a\u202eb", "-D", file, check=2)
    run("user", "add", "a\x1b[31mb", "-D", file, check=2)


def test_a_database_without_the_plugin_is_refused(run: Run, file: Path, plugins: Plugins) -> None:
    with Database(file) as database:
        disable(database, plugins, "users")
    for words in (("user", "list"), ("group", "list"), ("grant", "list"), ("access", "/", "--as", "root")):
        run(*words, "-D", file, check=11)
