"""Versions at the shell, beside a running server too."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.server import run_svc as start_svc
from svc_blackbox.terminal import run_on_terminal
from svc_blackbox.versions import fork_names, head_version, make_snapshot, snapshot_names

Make = Callable[..., Path]


def put(database: Path, path: str, content: bytes, *options: str) -> None:
    run_svc("put", "-D", database, "-", path, *options, stdin=content)


def as_json(*arguments: object) -> Any:
    """Output of a command with ``--json``: one document, or one a line."""
    text = run_svc(*arguments, "--json").stdout
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def members(value: Any, name: str) -> list[Any]:
    """A list that stands alone or as a member of an object."""
    found: list[Any] = value[name] if isinstance(value, dict) else value
    return found


@pytest.fixture
def database(database_of: Make) -> Path:
    return database_of({"/f.txt": b"one\n", "/d/g": b"g\n"})


def test_snapshots_from_beginning_to_end(database: Path) -> None:
    made = as_json("snapshot", "create", "first", "-D", database)
    assert made["name"] == "first"
    put(database, "/f.txt", b"two\n")
    run_svc("snapshot", "create", "second", "-D", database)
    assert [item["name"] for item in members(as_json("snapshot", "list", "-D", database), "snapshots")] == [
        "second",
        "first",
    ]
    assert b"first" in run_svc("snapshot", "list", "-D", database).stdout
    assert run_svc("cat", "-D", database, "--snapshot", "first", "/f.txt").stdout == b"one\n"
    run_svc("snapshot", "rename", "first", "1st", "-D", database)
    run_svc("snapshot", "restore", "1st", "-D", database)
    assert run_svc("cat", "-D", database, "/f.txt").stdout == b"one\n"
    names = [item["name"] for item in members(as_json("snapshot", "list", "-D", database), "snapshots")]
    assert {"1st", "second"} <= set(names)
    run_svc("snapshot", "delete", "second", "-D", database)
    assert run_svc("cat", "-D", database, "--snapshot", "second", "/f.txt", check=False).returncode == 3


def test_forks_from_beginning_to_end(database: Path) -> None:
    run_svc("fork", "create", "draft", "-D", database)
    run_svc("fork", "create", "other", "-D", database)
    with_fork = run_svc("put", "--help").stdout
    if b"--fork" in with_fork:
        put(database, "/f.txt", b"draft\n", "--fork", "draft")
        assert run_svc("cat", "-D", database, "/f.txt").stdout == b"one\n"
    names = {item["name"] for item in members(as_json("fork", "list", "-D", database), "forks")}
    assert names == {"draft", "other"}
    run_svc("fork", "abandon", "other", "-D", database)
    run_svc("fork", "promote", "draft", "-D", database)
    names = {item["name"] for item in members(as_json("fork", "list", "-D", database), "forks")}
    assert names == {"draft"}


def test_mistakes_have_their_exit_codes(database: Path) -> None:
    run_svc("snapshot", "create", "taken", "-D", database)
    run_svc("fork", "create", "taken", "-D", database)
    put(database, "/f.txt", b"two\n")
    for code, *arguments in (
        (4, "snapshot", "create", "taken"),
        (2, "snapshot", "create", "_svc_mine"),
        (2, "snapshot", "create", ""),
        (3, "snapshot", "delete", "none"),
        (3, "snapshot", "restore", "none"),
        (3, "snapshot", "rename", "none", "x"),
        (4, "fork", "create", "taken"),
        (3, "fork", "promote", "none"),
        (3, "fork", "abandon", "none"),
        (4, "fork", "promote", "taken"),
        (3, "merge", "none"),
        (3, "restore", "/f.txt", "--from", "none"),
        (3, "restore", "/none", "--from", "taken"),
        (4, "restore", "/f.txt"),  # nothing was deleted there
        (3, "show", "0" * 64),
    ):
        result = run_svc(*arguments, "-D", database, check=False)
        assert result.returncode == code, (arguments, result)
        assert b"Traceback" not in result.stderr
    result = run_svc("snapshot", "delete", "none", "-D", database, "--json", check=False)
    assert json.loads(result.stderr)["code"] == "NOT_FOUND"


def test_one_file_is_restored_from_any_name_of_a_version(database: Path) -> None:
    run_svc("snapshot", "create", "first", "-D", database)
    version = json.loads(run_svc("info", "-D", database, "--json").stdout)["version"]
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
    time.sleep(1.1)
    for name in ("first", version, moment):
        put(database, "/f.txt", b"changed\n")
        put(database, "/d/g", b"changed\n")
        run_svc("restore", "/f.txt", "--from", name, "-D", database)
        assert run_svc("cat", "-D", database, "/f.txt", "/d/g").stdout == b"one\nchanged\n"
    run_svc("restore", "/d", "--from", "first", "-D", database)
    assert run_svc("cat", "-D", database, "/d/g").stdout == b"g\n"


def test_the_log_one_commit_and_a_history(database: Path) -> None:
    put(database, "/f.txt", b"two\n")
    put(database, "/d/g", b"changed\n")
    log = members(as_json("log", "-D", database), "commits")
    assert len([entry for entry in log if entry["version"] != entry["parent"]]) >= 3
    assert log[0]["version"] == json.loads(run_svc("info", "-D", database, "--json").stdout)["version"]
    assert len(members(as_json("log", "/f.txt", "-D", database), "commits")) == 2
    text = run_svc("log", "-D", database).stdout.decode()
    assert log[0]["version"][:8] in text
    shown = run_svc("show", log[0]["version"], "-D", database).stdout
    assert b"/d/g" in shown
    assert b"/f.txt" not in shown
    history = members(as_json("history", "/f.txt", "-D", database), "history")
    assert isinstance(history, list)
    run_svc("history", "/never", "-D", database)
    blame = run_svc("blame", "/f.txt", "-D", database).stdout
    assert b"two" in blame
    assert run_svc("blame", "/never", "-D", database, check=False).returncode == 3


def test_hidden_things_stay_hidden_at_the_shell(database: Path) -> None:
    run_svc("snapshot", "create", "first", "-D", database)
    for arguments in (
        ("blame", "/.svc-system"),
        ("restore", "/.svc-system", "--from", "first"),
        ("restore", "/.system/x", "--from", "first"),
    ):
        assert run_svc(*arguments, "-D", database, check=False).returncode == 3, arguments
    assert b"svc-system" not in run_svc("log", "-D", database, "--json").stdout
    assert b"svc-system" not in run_svc("history", "/.svc-system", "-D", database, check=False).stdout


def test_dump_as_it_was(database: Path, tmp_path: Path) -> None:
    run_svc("snapshot", "create", "first", "-D", database)
    version = json.loads(run_svc("info", "-D", database, "--json").stdout)["version"]
    time.sleep(0.01)
    moment = str(int(time.time() * 1000))
    time.sleep(0.01)
    put(database, "/f.txt", b"two\n")
    for number, name in enumerate(("first", version, moment)):
        run_svc("dump", "-D", database, tmp_path / f"out{number}", "--at", name)
        assert (tmp_path / f"out{number}" / "f.txt").read_bytes() == b"one\n"
    run_svc("dump", "-D", database, tmp_path / "head", "--at", "HEAD")
    assert (tmp_path / "head" / "f.txt").read_bytes() == b"two\n"
    result = run_svc("dump", "-D", database, tmp_path / "none", "--at", "no-such", check=False)
    assert result.returncode == 3
    assert not (tmp_path / "none").exists() or not any((tmp_path / "none").iterdir())


def test_merging_at_the_shell(new_server: Callable[..., Server]) -> None:
    server = new_server()
    client = server.client()
    client.store("/a", b"base")
    run_svc("fork", "create", "draft", "-D", server.database)
    client.put_file("/a", b"fork", fork="draft")
    client.store("/b", b"head")
    run_svc("merge", "draft", "-D", server.database)
    assert (client.read("/a"), client.read("/b")) == (b"fork", b"head")
    client.store("/a", b"head")
    client.put_file("/a", b"fork again", fork="draft")
    result = run_svc("merge", "draft", "-D", server.database, check=False)
    assert result.returncode == 4
    assert b"/a" in result.stderr + result.stdout
    assert client.read("/a") == b"head"


def test_commands_work_while_a_server_has_the_file_open(new_server: Callable[..., Server]) -> None:
    server = new_server()
    client = server.client()
    client.store("/f", b"one")
    run_svc("snapshot", "create", "shell", "-D", server.database)
    assert snapshot_names(client) == ["shell"]
    client.store("/f", b"two")
    make_snapshot(client, "http")
    names = [
        item["name"] for item in members(as_json("snapshot", "list", "-D", server.database), "snapshots")
    ]
    assert names == ["http", "shell"]
    run_svc("fork", "create", "draft", "-D", server.database)
    assert fork_names(client) == ["draft"]
    assert client.put_file("/f", b"draft", fork="draft").status == 200
    run_svc("snapshot", "restore", "shell", "-D", server.database)
    assert client.read("/f") == b"one"
    log = members(as_json("log", "-D", server.database), "commits")
    assert log[0]["version"] == head_version(client)
    client.store("/f", b"three")
    run_svc("restore", "/f", "--from", "http", "-D", server.database)
    assert client.read("/f") == b"two"


def test_names_and_messages_cannot_drive_the_terminal(new_server: Callable[..., Server]) -> None:
    server = new_server()
    client = server.client()
    hostile = "\x1b]0;title\x07\x1b[2J\u009b2Jevil"
    batch = {"message": hostile, "operations": [{"op": "put", "path": "/f.txt", "content": hostile + "\n"}]}
    assert client.post("/files/batch", batch).status in (200, 400)
    client.store("/f.txt", hostile.encode() + b"\n")
    make_snapshot(client, "one", metadata={hostile: hostile})
    version = head_version(client)
    for arguments in (
        ["log"],
        ["show", version],
        ["blame", "/f.txt"],
    ):
        shown = run_on_terminal(*arguments, "-D", server.database)
        assert "\x1b]" not in shown, arguments
        assert "\x07" not in shown, arguments
        assert "\x9b" not in shown, arguments
        assert set(re.findall("\x1b\\[[0-9;?]*([A-Za-z])", shown)) <= {"m"}, arguments


@pytest.mark.parametrize(
    "command", ["snapshot", "fork", "merge", "restore", "log", "show", "history", "blame"]
)
def test_every_command_explains_itself(command: str) -> None:
    assert b"Usage: svc " + command.encode() in start_svc(command, "--help").stdout


def test_without_the_plugin_the_commands_say_which_is_missing(database: Path) -> None:
    for plugin in ("history", "task.gc", "versions"):
        run_svc("plugins", "disable", "-D", database, plugin)
    result = run_svc("snapshot", "list", "-D", database, check=False)
    assert result.returncode == 11
    assert b"versions" in result.stderr
