"""``--exclude`` of load and dump."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc.errors import UsageError
from svc_files.commands.exclusion import Exclusion

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.tmp", ("a.tmp",), True),
        ("*.tmp", ("d", "e", "a.tmp"), True),
        ("*.tmp", ("a.tmp", "b"), False),
        ("d/", ("e", "d"), True),
        ("/d", ("d",), True),
        ("/d", ("e", "d"), False),
        ("d/*", ("d", "a"), True),
        ("d/*", ("e", "d", "a"), False),
        ("**/d/*", ("e", "d", "a"), True),
        ("d/**", ("d", "a", "b"), True),
    ],
)
def test_a_glob_without_a_slash_fits_a_name_at_any_depth(
    pattern: str, path: tuple[str, ...], fits: bool
) -> None:
    assert Exclusion([pattern]).fits(path) is fits


@pytest.mark.parametrize("pattern", ["", "/", "."])
def test_a_glob_names_something(pattern: str) -> None:
    with pytest.raises(UsageError):
        Exclusion([pattern])


def test_what_is_excluded_is_not_loaded_and_not_removed(
    run: Run, database: str, top: str, tree: Path
) -> None:
    run("put", "-", f"{top}/kept/data", "-D", database, stdin=b"kept")
    run("put", "-", f"{top}/gone", "-D", database, stdin=b"gone")
    words = ("--delete", "--exclude", "kept", "--exclude", "deep/er", "--exclude", "*.bin")
    run("load", tree, top, "-q", *words, "-D", database)
    seen = run("ls", "-R", top, "-D", database).text
    assert "/kept/data" in seen
    for left_out in ("gone", "/er/", "large.bin"):
        assert left_out not in seen


def test_an_empty_directory_keeps_what_is_excluded_in_it(
    run: Run, database: str, top: str, tmp_path: Path
) -> None:
    run("put", "-", f"{top}/d/kept", "-D", database, stdin=b"kept")
    (tmp_path / "tree" / "d").mkdir(parents=True)
    run("load", tmp_path / "tree", top, "-q", "--delete", "--keep-times", "--exclude", "kept", "-D", database)
    assert run("cat", f"{top}/d/kept", "-D", database).text == "kept"


def test_what_is_excluded_is_not_dumped(
    run: Run, database: str, top: str, tree: Path, tmp_path: Path
) -> None:
    run("load", tree, top, "-q", "-D", database)
    out = tmp_path / "out"
    done = run("dump", out, top, "-q", "--exclude", "er", "--exclude", "*.txt", "-D", database, check=12)
    assert sorted(path.name for path in out.rglob("*")) == [
        "café & 50%?#.json",
        "dangling",
        "deep",
        "empty",
        "large.bin",
        "nothing",
    ]
    assert f"{top}/deep/up: the link leads to {top}/small.txt, which is excluded" in done.err
