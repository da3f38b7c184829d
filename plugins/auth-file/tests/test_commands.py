"""``svc auth-file``: keys that the file takes as they are printed, and what ``check`` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc_auth_file.commands import auth_file
from svc_auth_file.keys import hash_of_key, key_id_of
from svc_auth_file.source import read_users

USER = '[[users]]\nusername = "ann"\n\n'


def run(*arguments: object) -> Result:
    return CliRunner().invoke(auth_file, [str(argument) for argument in arguments])


def test_a_new_key_is_printed_with_lines_that_let_it_in(tmp_path: Path) -> None:
    printed = run(
        "new-key", "--label", 'Ann\'s "laptop" ü\\', "--rule", "/a=b/**=-r--l---", "--rule", "/**=--------"
    )
    assert printed.exit_code == 0, printed.output
    key, _, lines = printed.stdout.partition("\n\n")
    file = tmp_path / "users.toml"
    file.write_text(USER + lines)
    (read,) = read_users(str(file)).users[0].keys
    assert read.hash == hash_of_key(key)
    assert read.label == 'Ann\'s "laptop" ü\\'
    assert [(rule.glob, rule.flags) for rule in read.rules] == [("/a=b/**", "-r--l---"), ("/**", "--------")]


def test_every_key_is_another_one() -> None:
    assert run("new-key").stdout.split()[0] != run("new-key").stdout.split()[0]


@pytest.mark.parametrize("days", [1, 3650])
def test_the_longest_and_the_shortest_key_are_taken(tmp_path: Path, days: int) -> None:
    document = json.loads(run("new-key", "--expires-in-days", days, "--json").stdout)
    file = tmp_path / "users.toml"
    file.write_text(USER + document["toml"])
    (read,) = read_users(str(file)).users[0].keys
    assert read.key_id == document["key_id"] == key_id_of(hash_of_key(document["key"]))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--expires-in-days", "0"),
        ("--expires-in-days", "3651"),
        ("--rule", "/a"),
        ("--rule", "/a=rw"),
        ("--rule", "a=-r------"),
        ("--label", "a\nb"),
    ],
)
def test_what_no_key_can_have_is_refused(arguments: tuple[str, ...]) -> None:
    refused = run("new-key", *arguments)
    assert refused.exit_code != 0
    assert "svc_k_" not in refused.output


def test_a_file_that_is_in_order(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    file.write_text(USER + "root = true\nactive = false\n[[users]]\nusername = 'bob'\n")
    checked = run("check", file)
    assert checked.exit_code == 0, checked.output
    assert "root, inactive" in checked.stdout
    assert checked.stdout.endswith("is in order: 2 users.\n")
    assert [user["username"] for user in json.loads(run("check", file, "--json").stdout)["users"]] == [
        "ann",
        "bob",
    ]


def test_all_that_is_wrong_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    file.write_text("[[users]]\nusername = ''\nemail = ''\n")
    refused = run("check", file)
    assert refused.exit_code != 0
    assert "username" in str(refused.exception)
    assert "email" in str(refused.exception)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "No such file" in str(run("check", tmp_path / "none").exception)
