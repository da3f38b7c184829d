"""``svc share``: the same against a file and a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import Database
from svc.plugins import Plugins, initialize
from svc_cli import main
from svc_testing import Server, start_server

from ..conftest import PLUGINS  # noqa: TID252

PATHS = ("/plans/a", "/plans/b", "/other")


@dataclass(frozen=True)
class Result:
    """What a command left."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@dataclass(frozen=True)
class Place:
    """What --database names, and the key for it."""

    database: str
    key: str | None = None


def fill(path: Path, plugins: Plugins) -> None:
    with Database(path) as database:
        initialize(database, plugins)
        with database.transaction() as transaction:
            for text in PATHS:
                transaction.put(tuple(text[1:].split("/")), b"x")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[tuple[Server, str]]:
    """One server for the tests of this module, and its root key."""
    path = tmp_path_factory.mktemp("server") / "served.svcdb"
    fill(path, plugins)
    with start_server(path, "--auth", "self-contained", "--workers", "2", plugins=PLUGINS) as running:
        yield running, next(word for word in running.output.split() if word.startswith("svc_k_"))


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path, plugins: Plugins) -> Place:
    if request.param == "server":
        running, key = request.getfixturevalue("server")
        return Place(running.url, key)
    fill(tmp_path / "cli.svcdb", plugins)
    return Place(str(tmp_path / "cli.svcdb"))


@pytest.fixture
def run(place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``svc`` with words; ``check`` is the exit code that is expected."""
    monkeypatch.setenv("SVC_PLUGINS", ",".join(PLUGINS))
    if place.key is not None:
        monkeypatch.setenv("SVC_API_KEY", place.key)

    def run_command(*words: object, check: int = 0) -> Result:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["svc"])
            with pytest.raises(SystemExit) as ended:
                main([*map(str, words), "-D", place.database])
        out, err = capsys.readouterr()
        assert ended.value.code == check, f"svc {words} exited with {ended.value.code}: {err}"
        return Result(out, err)

    return run_command


def test_paths_are_shared_listed_and_taken_back(run: Run) -> None:
    run("user", "add", "ann")
    run("group", "add", "staff")
    made = run("share", "add", "/plans", "/other", "--user", "ann", "--group", "staff", "--allow", "lr").out
    assert made == "shared /plans with ann, staff\nshared /other with ann, staff\n"
    lines = sorted(line.split()[:3] for line in run("share", "list", "/plans").out.splitlines()[1:])
    assert lines == [["group", "staff", "-r--l---"], ["user", "ann", "-r--l---"]]
    (by_user,) = [one for one in run("share", "list", "/plans", "--json").json if one["username"] == "ann"]
    assert (by_user["permissions"], by_user["created_by"]) == (
        "-r--l---",
        "00000000-0000-0000-0000-000000000000",
    )
    assert run("share", "remove", "/plans", "--user", "ann").out == "took back 1 share\n"
    assert run("share", "remove", "/plans", "/other", "--group", "staff", "--json").json == {"removed": 2}
    assert "shared" in run("share", "remove", "/plans", "--user", "ann", check=3).err
    assert run("share", "list", "/plans").out == ""
    run("share", "remove", "/other", "--user", "ann")
    run("group", "delete", "staff")
    run("user", "deactivate", "ann")


def test_links_are_made_listed_and_ended(run: Run, place: Place) -> None:
    made = run("share", "link", "/plans", "--days", "3", "--base-url", "https://files.example.org")
    assert made.out.startswith("https://files.example.org/share#svc_k_")
    assert "is good until" in made.err
    usual = run("share", "link", "/other", "--json").json
    here = place.database if place.key is not None else ""
    assert usual["url"] == f"{here}/share#{usual['token']}"
    (line,) = run("share", "links", "/other").out.splitlines()[1:]
    assert line.split()[0] == usual["key_id"]
    listed = run("share", "links", "--json").json
    assert sorted(one["paths"] for one in listed) == [["/other"], ["/plans"]]
    assert usual["token"] not in json.dumps(listed)
    for one in listed:
        assert run("share", "revoke-link", one["key_id"]).out == f"ended link {one['key_id']}\n"
    assert run("share", "links").out == ""
    assert "link" in run("share", "revoke-link", usual["key_id"], check=3).err


def test_what_is_shared_with_somebody_is_found(run: Run, place: Place) -> None:
    run("user", "add", "eve", "--json")
    run("share", "add", "/plans/a", "--user", "eve", "--allow", "r")
    if place.key is not None:
        assert "--as" in run("share", "with-me", "--as", "eve", check=2).err
        assert run("share", "with-me").out == ""  # root's own key asks
    else:
        (line,) = run("share", "with-me", "--as", "eve").out.splitlines()[1:]
        assert (line.split()[0], line.split()[-1]) == ("-r------", "/plans/a")
        assert run("share", "with-me", "--as", "eve", "--json").json[0]["permissions"] == "-r------"
        assert "--as" in run("share", "with-me", check=2).err
        assert "user" in run("share", "with-me", "--as", "nobody", check=3).err
    run("share", "remove", "/plans/a", "--user", "eve")


def test_what_makes_no_sense_is_refused(run: Run) -> None:
    for words in (
        ("add", "/plans"),
        ("add", "/plans", "--user", "ann", "--allow", "rx"),
        ("add", "/plans", "--user", "ann", "--allow", ""),
        ("add", "--user", "ann"),
        ("link", "/plans", "--days", "0"),
        ("link", "/plans", "--base-url", "nowhere"),
    ):
        run("share", *words, check=2)
    for words in (("link", "/missing"), ("add", "/missing", "--group", "none")):
        run("share", *words, check=3)
