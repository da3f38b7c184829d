"""What writes with ``--fork`` changes the fork, and leaves HEAD as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_testing import start_server

Run = Callable[..., Any]

PLUGINS = ("files", "versions")


@pytest.fixture(scope="module")
def forking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_server(tmp_path_factory.mktemp("server") / "served.svcdb", plugins=PLUGINS) as running:
        yield running.url


@pytest.fixture(params=["file", "server"])
def forked(request: pytest.FixtureRequest, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A database with the file ``/a``, and a fork ``f``."""
    monkeypatch.setenv("SVC_PLUGINS", ",".join(PLUGINS))
    place = str(tmp_path / "data.svcdb")
    if request.param == "server":
        place = request.getfixturevalue("forking_server")
    run("put", "-", "/a", "-D", place, stdin=b"a")
    run("fork", "create", "f", "-D", place)
    return place


def test_every_command_that_writes_takes_a_fork(run: Run, forked: str, tree: Path) -> None:
    def on_fork(*words: object, **options: int) -> str:
        return run(*words, "--fork", "f", "-D", forked, **options).text

    before = run("ls", "-R", "-D", forked).text
    small = tree / "small.txt"
    on_fork("mkdir", "/d")
    on_fork("put", small, "/d")
    on_fork("cp", "/a", "/d")
    on_fork("mv", "/a", "/b")
    on_fork("ln", "/b", "/l")
    on_fork("load", tree, "/tree", "-q", "--exclude", "d*", check=0)
    on_fork("rm", "-f", "/a", "/d/a")
    seen = on_fork("ls", "-R").splitlines()
    assert [line for line in seen if not line.startswith("/tree")] == [
        "/b",
        "/d/",
        "/d/small.txt",
        "/l -> /b",
    ]
    assert "/tree/small.txt" in seen
    assert run("ls", "-R", "-D", forked).text == before


@pytest.mark.parametrize(
    "words",
    [
        ("mkdir", "/d"),
        ("cp", "/a", "/b"),
        ("mv", "/a", "/b"),
        ("ln", "/a", "/b"),
        ("rm", "/a"),
        ("rm", "-f", "/a"),
        ("put", "-", "/b"),
    ],
    ids=lambda words: "-".join(words).replace("/", ""),
)
def test_a_fork_that_is_not_there_is_an_error(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    place = tmp_path / "x.svcdb"
    run("put", "-", "/a", "-D", place, stdin=b"a")
    assert "no fork of this name" in run(*words, "--fork", "none", "-D", place, check=3).err
