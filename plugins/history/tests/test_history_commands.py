"""``svc log``, ``svc show``, ``svc history`` and ``svc blame``, as the shell calls them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from svc.plugin import Database
from svc.plugins import initialize, load_plugins, parse_allowed
from svc_cli import main
from svc_history.models import HistoryPage, HistoryRow
from svc_testing import commands_of, simulate_collection

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli.md"

SOURCE = {"database", "url", "token", "tls_ca", "as_json"}
"""Options that all commands share; the documentation has them once."""

Run = Callable[..., str]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An open database, as a server would have it open while commands run."""
    with Database(tmp_path / "x.svcdb") as opened:
        initialize(opened, load_plugins(parse_allowed("history,versions")))
        yield opened


@pytest.fixture
def run(database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the database; returns what it printed, or what it said when it failed."""
    monkeypatch.setenv("SVC_PLUGINS", "history,versions")
    monkeypatch.setenv("TZ", "UTC")

    def run_command(*words: str, check: int = 0) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "-D", str(database.path)])
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == check, err
        return out if check == 0 else err

    return run_command


def put(database: Database, path: str, content: bytes | None, actor: str, message: str | None = None) -> str:
    where = tuple(path.strip("/").split("/"))
    with database.transaction(actor=actor, message=message) as transaction:
        if content is None:
            transaction.delete(where)
        else:
            transaction.put(where, content, content_type="text/plain")
    return database.head().root.hex()


def test_the_log_has_a_line_for_each_commit(run: Run, database: Database) -> None:
    first = put(database, "/a", b"1", "ann", "begin\nand more")
    second = put(database, "/d/b", b"1", "bob")
    lines = [line.split() for line in run("log").splitlines()[1:]]
    assert [line[0] for line in lines] == [second[:12], first[:12]]
    assert lines[1][4:] == ["ann", "+1", "~0", "-0", "begin"]
    assert [line.split()[0] for line in run("log", "/d").splitlines()[1:]] == [second[:12]]
    assert run("log", "/none") == ""


def test_the_log_as_json_is_what_the_route_answers(run: Run, database: Database) -> None:
    versions = [put(database, "/a", b"%d" % number, "ann") for number in range(3)]
    found = json.loads(run("log", "--json", "-n", "2"))
    assert found["has_more"] is True
    assert len(found["commits"]) == 2
    assert found["commits"][0]["version"] == versions[-1]
    assert json.loads(run("log", "--json", "-n", "0"))["has_more"] is False


def test_the_log_of_a_fork_goes_on_with_head(run: Run, database: Database) -> None:
    first = put(database, "/a", b"1", "ann")
    with database.transaction() as transaction:
        transaction.set_ref("forks/draft", bytes.fromhex(first))
    with database.transaction(ref="forks/draft") as transaction:
        transaction.put(("a",), b"2")
    on_fork = database.resolve_version(fork="draft").hex()
    assert [line.split()[0] for line in run("log", "--fork", "draft").splitlines()[1:]] == [
        on_fork[:12],
        first[:12],
        first[:12],
    ]
    run("log", "--fork", "none", check=3)


def test_a_commit_is_shown_with_its_changes(run: Run, database: Database) -> None:
    put(database, "/a", b"1", "ann")
    put(database, "/gone", b"1", "ann")
    with database.transaction(actor="bob", message="the reason") as transaction:
        transaction.put(("a",), b"2")
        transaction.delete(("gone",))
        transaction.mkdir(("new",))
    version = database.head().root.hex()
    shown = run("show", "HEAD")
    assert f"version  {version}" in shown
    assert "user     bob" in shown
    assert "message  the reason" in shown
    assert shown.splitlines()[-3:] == ["M  /a", "D  /gone", "A  /new/"]
    assert run("show", version) == shown
    assert run("show", str(database.head().sequence)) == shown
    as_json = json.loads(run("show", version, "--json"))
    assert [change["path"] for change in as_json["changes"]] == ["/a", "/gone", "/new"]
    assert as_json["totals"] == {"added": 0, "modified": 1, "deleted": 1}
    run("show", "nothing", check=3)


def test_a_history_goes_over_snapshots_or_commits(run: Run, database: Database) -> None:
    put(database, "/a", b"1", "ann", "begin")
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/monday", database.head().root)
    put(database, "/a", b"22", "bob", "go on")
    put(database, "/a", None, "cid", "stop")
    [line] = run("history", "/a").splitlines()[1:]
    assert line.split()[3:] == ["-", "added", "1", "monday"]
    changes = [line.split()[4:] for line in run("history", "/a", "--commits").splitlines()[1:]]
    assert changes == [["deleted", "stop"], ["modified", "2", "go", "on"], ["added", "1", "begin"]]
    rows = json.loads(run("history", "a", "--commits", "--json"))
    assert (rows["path"], len(rows["history"])) == ("/a", 3)
    assert run("history", "/never") == ""
    assert len(run("history", "/", "--commits", "-n", "2").splitlines()[1:]) == 2


def test_blame_shows_who_wrote_each_line(run: Run, database: Database) -> None:
    first = put(database, "/a", b"one\ntwo\n", "ann")
    second = put(database, "/a", b"one\n2\x1b[31m\n", "bob")
    lines = run("blame", "/a").splitlines()
    assert [re.split(r"\s{2,}", line) for line in lines] == [
        [first[:12], "ann", *re.split(r"\s{2,}", lines[0])[2:3], "1", "one"],
        [second[:12], "bob", *re.split(r"\s{2,}", lines[1])[2:3], "2", "2\\x1b[31m"],
    ]
    before = json.loads(run("blame", "/a", "--at", first, "--json"))
    assert [line["text"] for line in before["lines"]] == ["one", "two"]
    assert [line.split()[-1] for line in run("blame", "/").splitlines()[1:]] == ["a"]
    put(database, "/b", b"\0", "cid")
    assert run("blame", "/b").splitlines()[1].split()[1] == "cid"
    run("blame", "/none", check=3)


@pytest.mark.parametrize("command", ["log", "history", "blame"])
def test_the_system_has_no_history_at_the_shell_either(run: Run, command: str) -> None:
    run(command, "/.svc-system/users", check=3)


@pytest.mark.parametrize("command", commands_of("history").values(), ids=lambda command: str(command.name))
def test_every_command_is_documented_with_its_options(command: click.Command) -> None:
    text = PAGE.read_text(encoding="utf-8")
    match = re.search(rf"^## svc {command.name}\b.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert match is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in SOURCE:
            for spelling in parameter.opts:
                assert re.search(rf"`[^`]*{re.escape(spelling)}\b", match[0]), spelling
    assert CliRunner().invoke(command, ["--help"]).exit_code == 0


def test_what_was_collected_is_marked(run: Run, database: Database) -> None:
    first = put(database, "/a", b"one\n", "ann", "begin")
    second = put(database, "/a", b"one\ntwo\n", "bob")
    simulate_collection(database)
    third = put(database, "/a", b"one\ntwo\nthree\n", "cem")
    lines = [line.split() for line in run("log").splitlines()[1:]]
    assert [line[0] for line in lines] == [third[:12], second[:12], first[:12]]
    assert [line[5] for line in lines] == ["+0", "collected", "collected"]
    assert "its versions were collected" in run("show", first)
    rows = [line.split() for line in run("history", "/a", "--commits").splitlines()[1:]]
    assert ["modified" in row for row in rows] == [True, False, False]
    assert ["collected" in row for row in rows] == [False, True, True]
    assert [line.split()[0] for line in run("blame", "/a").splitlines()] == [
        f"^{second[:11]}",
        f"^{second[:11]}",
        third[:12],
    ]
    assert "was collected" in run("blame", "/a", "--at", first, check=3)


def test_what_a_server_tells_of_a_directory_that_the_caller_sees_in_part(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_commit = dict.fromkeys(("version", "sequence", "timestamp", "user"))
    entry = {"path": "/d", "name": "d", "entry_type": 3, "size": None, **of_commit}
    monkeypatch.setattr("svc_history.blame_of_file.blame_of_file", lambda *_: {"entries": [entry]})
    assert run("blame", "/").splitlines()[1].split() == ["-", "-", "-", "d/"]
    row = {"snapshot": "one", "timestamp": 0, "change_type": None, "size": None, "version": "0" * 64}
    page = HistoryPage("/d", [HistoryRow(**row)])
    monkeypatch.setattr("svc_history.answers.history_answer", lambda *_: page)
    assert run("history", "/d").split()[-3:] == ["-", "-", "one"]
