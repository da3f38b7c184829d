"""``svc mv``, ``cp``, ``mkdir``, ``ln`` and ``deleted``, of a file and of a server alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def filled(run: Run, database: str, top: str) -> str:
    """A directory with two files."""
    for name in ("a", "b"):
        run("put", "-", f"{top}/{name}", "-D", database, stdin=name.encode())
    return top


def names(run: Run, database: str, path: str) -> list[str]:
    return run("ls", "-R", path, "-D", database).text.split()


def test_what_is_moved_goes_into_a_directory_under_its_own_name(run: Run, database: str, filled: str) -> None:
    run("mkdir", f"{filled}/d", "-D", database)
    done = run("mv", f"{filled}/a", f"{filled}/b", f"{filled}/d", "--json", "-D", database).json
    assert [result["path"] for result in done["results"]] == [f"{filled}/d/a", f"{filled}/d/b"]
    assert run("mv", f"{filled}/d/a", f"{filled}/c", "-D", database).text == "moved 1 path\n"
    run("mv", f"{filled}/c", f"{filled}/new/", "-D", database)
    assert run("cat", f"{filled}/new/c", "-D", database).text == "a"


def test_a_copy_of_a_directory_holds_what_it_holds(run: Run, database: str, filled: str) -> None:
    run("cp", filled, f"{filled}-copy", "-D", database)
    assert run("cat", f"{filled}-copy/a", f"{filled}/b", "-D", database).text == "ab"
    run("cp", filled, f"{filled}-copy", "-D", database)
    assert run("cat", f"{filled}-copy/{filled[1:]}/a", "-D", database).text == "a"


@pytest.mark.parametrize("command", ["mv", "cp"])
def test_nothing_is_replaced_without_force(run: Run, database: str, filled: str, command: str) -> None:
    words = (command, f"{filled}/a", f"{filled}/b", "-D", database)
    assert "Something stands at the destination." in run(*words, check=4).err
    run(*words, "--force")
    assert run("cat", f"{filled}/b", "-D", database).text == "a"


@pytest.mark.parametrize("command", ["mv", "cp"])
def test_all_are_taken_or_none(run: Run, database: str, filled: str, command: str) -> None:
    run("mkdir", f"{filled}/d", "-D", database)
    run(command, f"{filled}/a", f"{filled}/none", f"{filled}/d", "-D", database, check=3)
    assert names(run, database, f"{filled}/d") == []
    run(command, f"{filled}/a", f"{filled}/b", f"{filled}/none", "-D", database, check=3)
    run(command, f"{filled}/a", f"{filled}/d", f"{filled}/b", "-D", database, check=4)
    same = (f"{filled}/a", f"{filled}/x/a")
    assert "same name" in run(command, *same, f"{filled}/d", "-D", database, check=2).err
    run(command, "/", f"{filled}/d", "-D", database, check=2)


def test_a_directory_that_is_there_is_made_only_with_parents(run: Run, database: str, filled: str) -> None:
    made = run("mkdir", f"{filled}/x/y", f"{filled}/z", "-D", database)
    assert made.text == "made 2 directories\n"
    run("mkdir", f"{filled}/z", "-D", database, check=4)
    run("mkdir", "-p", f"{filled}/z", "-D", database)
    run("mkdir", "-p", f"{filled}/a", "-D", database, check=4)


def test_a_link_leads_to_its_target(run: Run, database: str, filled: str) -> None:
    assert (
        run("ln", f"{filled}/a", f"{filled}/l", "-D", database).text == f"linked {filled}/l to {filled}/a\n"
    )
    run("ln", f"{filled}/b", f"{filled}/l", "-D", database, check=4)
    run("ln", "-f", f"{filled}/b", f"{filled}/l", "-D", database)
    assert run("cat", f"{filled}/l", "-D", database).text == "b"
    run("ln", f"{filled}/b", f"{filled}/d/", "-D", database)
    assert run("ls", "--json", f"{filled}/d", "-D", database).lines[0]["target"] == f"{filled}/b"


def test_what_was_deleted_is_listed(run: Run, database: str, filled: str) -> None:
    assert run("deleted", filled, "-D", database).text == ""
    run("rm", f"{filled}/a", "-D", database)
    [gone] = run("deleted", filled, "--json", "-D", database).lines
    assert (gone["path"], gone["size"], gone["entry_type"]) == (f"{filled}/a", 1, 2)
    assert run("deleted", filled, "-D", database).text.split()[-1] == f"{filled}/a"
