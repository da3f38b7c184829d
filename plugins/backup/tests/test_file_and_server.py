"""Every command does and prints the same for a database file and for the server of that file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import Database
from svc_testing import start_server

from .conftest import fill  # noqa: TID252


@dataclass(frozen=True)
class Served:
    """A database with two versions, as a file and behind a server."""

    path: Path
    url: str
    first: str
    second: str

    @property
    def places(self) -> tuple[str, str]:
        return str(self.path), self.url


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("served") / "x.svcdb"
    with start_server(path, plugins=("backup",)) as server:
        with Database(path) as database:
            source = fill(database)
            with database.transaction() as transaction:
                transaction.set_ref("snapshots/monday", source.first)
        yield Served(path, server.url, source.first.hex(), source.second.hex())


@pytest.mark.parametrize(
    "options",
    [(), ("--snapshot", "monday"), ("--hash", "FIRST"), ("--at", "2999-01-01"), ("--since", "monday")],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_export(run: Any, served: Served, tmp_path: Path, options: tuple[str, ...], form: Any) -> None:
    words = [served.first if word == "FIRST" else word for word in options]
    told = []
    for number, place in enumerate(served.places):
        output = tmp_path / str(number)
        told.append(
            run("export", "-D", place, "-o", output, *words, *form).out.replace(str(output), "OUTPUT")
        )
        assert output.stat().st_mode & 0o777 == 0o600
    assert told[1] == told[0]
    assert (tmp_path / "0").stat().st_size == (tmp_path / "1").stat().st_size
    if "--since" not in words:
        with Database(tmp_path / "1", read_only=True) as exported:
            assert exported.head().root.hex() == (
                served.first if words and "--at" not in words else served.second
            )


def test_a_patch(run: Any, served: Served, tmp_path: Path) -> None:
    told = [
        run("diff", "-D", place, "--from", "monday", "-o", tmp_path / str(number)).out
        for number, place in enumerate(served.places)
    ]
    assert told[1] == told[0]
    assert "Files added" in told[0]
    counts = [run("diff", "-D", place, "--from", "monday", "--json").out for place in served.places]
    assert counts[1] == counts[0]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("export -o OUT --snapshot none", 3),
        ("export -o OUT --hash zz", 2),
        ("export -o OUT --at yesterday-ish", 2),
        ("export -o OUT --since none", 3),
        ("export -o /proc/x", 5),
        ("diff --from none -o OUT", 3),
        ("import MISSING", 3),
        ("import GARBAGE", 6),
        ("promote --hash zz", 2),
    ],
)
def test_what_is_refused(run: Any, served: Served, tmp_path: Path, words: str, code: int) -> None:
    (tmp_path / "garbage").write_bytes(b"PK\3\4 not ours" * 30)
    places = {"OUT": "out", "MISSING": "missing", "GARBAGE": "garbage"}
    line = [str(tmp_path / places[word]) if word in places else word for word in words.split()]
    of_file = run(*line, "-D", served.path, check=code)
    # Over HTTP what is wrong with a file is 400, whatever it is.
    of_server = run(*line, "-D", served.url, check=2 if words == "import GARBAGE" else code)
    assert not (tmp_path / "out").exists()
    if words != "import GARBAGE":
        assert of_server.err == of_file.err


def test_what_only_a_file_can_do_is_said(run: Any, served: Served, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    for words in (
        ("export", "-o", tmp_path / "y", "--root-key", "k"),
        ("import", tmp_path / "x", "--root-key", "k"),
        ("import", tmp_path / "x", "--unlimited"),
    ):
        ran = run(*words, "-D", served.url, check=2)
        assert "This needs a database file, not a URL" in ran.err


def test_imports_and_promotions(run: Any, served: Served, tmp_path: Path) -> None:
    run("export", "-D", served.path, "-o", tmp_path / "full", "--hash", served.first)
    run("diff", "-D", served.path, "--from", served.first, "--to", served.second, "-o", tmp_path / "patch")

    def story(place: str) -> list[str]:
        told = [
            run("import", tmp_path / "full", "--promote", "-D", place).out,
            run("promote", "--hash", served.second, "-D", place).out,
            run("promote", "--hash", served.first, "--json", "-D", place).out,
            run("import", tmp_path / "patch", "--json", "-D", place).out,
            run("promote", "--hash", served.second, "-D", place).out,
            run("import", tmp_path / "patch", "--promote", "-D", place, check=4).err,
            run("import", tmp_path / "patch", "--force", "-D", place).out,
            run("import", tmp_path / "patch", tmp_path / "full", "--json", "-D", place).out,
            run("import", tmp_path / "patch", tmp_path / "full", "--promote", "-D", place).out,
        ]
        return [re.sub(r" +", " ", text) for text in told]

    of_file, of_server = map(story, served.places)
    assert of_server == of_file
    with Database(served.path, read_only=True) as database:
        assert database.head().root.hex() == served.second
