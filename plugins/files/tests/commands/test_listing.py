"""ls: names, details, patterns, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from svc.errors import NotFound
from svc_cli import Source
from svc_files.commands.completing import paths
from svc_files.commands.listing import ls

Run = Callable[..., Any]


@pytest.fixture
def listed(run: Run, database: str, top: str, tree: Path) -> str:
    run("load", tree, top, "-D", database)
    return top


def test_children_come_in_order_with_marks(run: Run, database: str, listed: str) -> None:
    assert run("ls", listed, "-D", database).text.splitlines() == [
        f"dangling -> {listed}/nowhere",
        "deep/",
        "empty/",
        "large.bin",
        "nothing",
        "small.txt",
    ]


def test_everything_below_is_listed_with_full_paths(run: Run, database: str, listed: str) -> None:
    found = run("ls", "-R", f"{listed}/deep", "-D", database).text.splitlines()
    assert found == [
        f"{listed}/deep/caf\u00e9 & 50%?#.json",
        f"{listed}/deep/dir -> {listed}/deep/er",
        f"{listed}/deep/er/",
        f"{listed}/deep/er/data",
        f"{listed}/deep/up -> {listed}/small.txt",
    ]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.txt", ["small.txt"]),
        ("deep/*/data", ["deep/er/data"]),
        ("**/data", ["deep/er/data"]),
        ("*/e?", ["deep/er/"]),
        ("[ln]*", ["large.bin", "nothing"]),
    ],
)
def test_patterns_select_by_path(
    run: Run, database: str, listed: str, pattern: str, names: list[str]
) -> None:
    found = run("ls", f"{listed}/{pattern}", "-D", database).text.splitlines()
    assert found == [f"{listed}/{name}" for name in names]


def test_a_pattern_that_fits_nothing_is_not_found(run: Run, database: str, listed: str) -> None:
    run("ls", f"{listed}/*.nope", "-D", database, check=3)


def test_json_lines_carry_the_members_of_a_listing(run: Run, database: str, listed: str) -> None:
    items = {item["name"]: item for item in run("ls", listed, "-D", database, "--json").lines}
    assert items["small.txt"]["content_type"] == "text/plain"
    assert items["small.txt"]["entry_type"] == 2
    assert items["dangling"]["target"] == f"{listed}/nowhere"
    assert items["deep"]["file_count"] == 2
    assert items["deep"]["total_size"] == 2 + 256 * 40


def test_long_lines_show_type_size_and_time(run: Run, database: str, listed: str) -> None:
    lines = run("ls", "-l", listed, "-D", database).text.splitlines()
    assert lines[1].startswith("d ") and "2 files" in lines[1]
    assert "293K" in lines[3]
    assert " 300000 " in run("ls", "-l", "--bytes", f"{listed}/large.bin", "-D", database).text


def test_a_directory_itself_has_one_line(run: Run, database: str, listed: str) -> None:
    [item] = run("ls", "-d", listed, "-D", database, "--json").lines
    assert (item["path"], item["entry_type"]) == (listed, 3)


def test_a_link_is_followed_when_it_is_named(run: Run, database: str, listed: str) -> None:
    assert run("ls", f"{listed}/deep/dir", "-D", database).text == "data\n"
    [item] = run("ls", f"{listed}/dangling", "-D", database, "--json").lines
    assert item["entry_type"] == 8


def test_paths_complete_themselves(run: Run, tree: Path, tmp_path: Path) -> None:
    database = tmp_path / "data.svcdb"
    run("load", tree, "/t", "-D", database)

    def complete(typed: str) -> list[str]:
        return list(paths(Source(str(database)), typed))

    assert complete("") == ["/t/"]
    assert complete("/t/d") == ["/t/dangling", "/t/deep/"]
    assert complete("t/deep/dir") == ["t/deep/dir"]
    assert complete("/t/deep/dir/") == ["/t/deep/dir/data"]
    with pytest.raises(NotFound):
        complete("/none/x")


def test_help_names_every_option() -> None:
    text = CliRunner().invoke(ls, ["--help"]).output
    for option in (
        "--long",
        "--recursive",
        "--json",
        "--version",
        "--snapshot",
        "--fork",
        "--database",
        "--token",
    ):
        assert option in text


def test_errors_are_json_with_json(run: Run, tmp_path: Path) -> None:
    error = json.loads(run("ls", "/", "-D", tmp_path / "none.svcdb", "--json", check=3).err)
    assert error["code"] == "NOT_FOUND"


def test_a_database_file_needs_no_client(run: Any, tmp_path: Path) -> None:
    database = tmp_path / "x.svcdb"
    run("put", "-", "/f", "-D", database, stdin=b"x")
    program = (
        "import sys\nfrom svc_cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "assert not {'svc_client', 'urllib3', 'http.client'} & set(sys.modules)\n"
    )
    words = [sys.executable, "-c", program, "ls", "-D", str(database)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "SVC_PLUGINS": "files"})
    assert (done.stdout, done.returncode) == ("f\n", 0), done.stderr
