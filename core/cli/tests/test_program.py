"""The command line: errors and exit codes, help, version, completion, info and verify."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import svc.errors
from svc.database import Database
from svc.errors import NotFound, PluginMissing, SvcError, UsageError
from svc.plugins import CommandHome, load_descriptors
from svc_cli import main, open_database
from svc_cli.lazy_command import load_command
from svc_cli.output import counted, readable_bytes, readable_time
from svc_cli.program import GROUPS, root

OPERATING = Path(__file__).parents[3] / "docs" / "operating.md"


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SVC_PLUGINS", "")
    monkeypatch.delenv("SVC_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def database(tmp_path: Path) -> str:
    with Database(tmp_path / "x.svcdb") as opened, opened.transaction() as transaction:
        transaction.put(("a", "b"), b"content", content_type="text/plain")
    return str(tmp_path / "x.svcdb")


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def failing_command(error: BaseException) -> click.Command:
    @click.command("fail")
    @click.option("--json", is_flag=True)
    def fail(json: bool) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (NotFound("There is nothing."), 3, "svc: There is nothing.\n"),
        (PluginMissing("It needs x."), 11, "svc: It needs x.\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (OSError(28, "No space left on device", "/x"), 9, "svc: No space left on device: /x\n"),
        (OSError(13, "Permission denied", "/x"), 5, "svc: Permission denied: /x\n"),
        (OSError(5, "Input/output error"), 1, "svc: Input/output error\n"),
    ],
)
def test_an_error_ends_with_its_sentence_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    text: str,
) -> None:
    monkeypatch.setitem(root.commands, "fail", failing_command(error))
    monkeypatch.setattr(type(root), "get_command", lambda self, _ctx, name: self.commands.get(name))
    assert run("fail") == code
    assert capsys.readouterr().err.lstrip() == text


def test_errors_are_json_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", "-D", "missing.svcdb", "--json") == 3
    captured = capsys.readouterr()
    assert json.loads(captured.err)["code"] == "NOT_FOUND"
    assert captured.out == ""


def test_a_wrong_word_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("no-such-command") == 2
    assert run("info", "--no-such-option") == 2
    assert "no-such-option" in capsys.readouterr().err


def test_what_was_meant_is_suggested_in_the_form_of_all_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verfiy") == 2
    assert capsys.readouterr().err == (
        "svc: No such command 'verfiy'. Did you mean 'verify'? 'svc --help' shows what there is.\n"
    )
    assert run("info", "--databse", "x") == 2
    assert capsys.readouterr().err == (
        "svc: No such option '--databse'. Did you mean '--database'? 'svc info --help' shows what there is.\n"
    )
    assert run("plugins", "enbale", "--json") == 2
    assert json.loads(capsys.readouterr().err) == {
        "error": "No such command 'enbale'. Did you mean 'enable'?",
        "code": "INVALID_INPUT",
    }


def test_version_and_help_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert re.fullmatch(r"svc \d+\.\d+\.\d+\n", capsys.readouterr().out)
    assert run("--help") == 0
    shown = capsys.readouterr().out
    for command in ("start", "info", "verify", "plugins", "completion"):
        assert command in shown
    assert run("start", "--help") == 0
    assert "SVC_TLS_CERT" in capsys.readouterr().out


def test_help_shows_commands_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    shown = capsys.readouterr().out
    groups = re.findall(r"^([A-Z][\w ]+):$", shown, re.MULTILINE)
    assert groups[0] == "Options"
    assert groups[1:] == [group for group in GROUPS if group in groups], "each plugin of svc names a group"
    assert re.search(r"^  verify ", shown.partition("Running it:")[2].partition("\n\n")[0], re.MULTILINE)
    assert re.search(r"^  plugins ", shown.partition("Plugins:")[2].partition("\n\n")[0], re.MULTILINE)


def test_help_imports_neither_the_server_nor_the_database() -> None:
    program = (
        "import sys\nfrom svc_cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('falcon', 'gevent', 'gunicorn', 'lmdb', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_imports_next_to_nothing() -> None:
    program = (
        "import sys\nfrom svc_cli import main\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('falcon', 'lmdb', 'msgspec', 'svc.database') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_completion_script(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert run("completion", shell) == 0
    assert "_SVC_COMPLETE" in capsys.readouterr().out


def test_info_describes_a_database(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", "-D", database) == 0
    assert re.search(r"^files: +1$", capsys.readouterr().out, re.MULTILINE)
    assert run("info", "-D", database, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["totals"]["files"] == 1
    assert facts["plugins"] == []


@pytest.mark.parametrize("words", [("info",), ("verify",), ("plugins", "list")])
@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_name_in_the_environment_is_not_the_default_database(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], empty: str
) -> None:
    Database("data.svcdb").close()
    monkeypatch.setenv("SVC_DATABASE", empty)
    assert run(*words) == 2
    assert "--database is empty" in capsys.readouterr().err
    assert run(*words, "-D", "missing.svcdb") == 3
    with pytest.raises(UsageError, match="--database is empty"):
        open_database(click.Context(root))


def test_verify_ends_with_0_only_when_all_is_well(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", "-D", database) == 0
    assert "All is well." in capsys.readouterr().out
    log = Path(database)
    damaged = bytearray(log.read_bytes())
    damaged[damaged.index(b"content")] ^= 1
    log.write_bytes(bytes(damaged))
    assert run("verify", "-D", database, "--json") == 7
    assert json.loads(capsys.readouterr().out)["damaged"][0]["path"] == "/a/b"
    assert run("verify", "-D", database) == 7
    assert f"1 thing is damaged in {database}." in capsys.readouterr().err


def test_info_and_verify_say_that_a_commit_is_lost(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.truncate(database, Path(database).stat().st_size * 2 // 3)
    assert run("info", "-D", database) == 0
    assert re.search(
        r"^wrong: +The log ends before any commit.* commit 1 .*durable", capsys.readouterr().out, re.MULTILINE
    )
    assert run("info", "-D", database, "--json") == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["source"]) == ("database.lost_commits", "database")
    assert run("verify", "-D", database) == 7
    told = capsys.readouterr()
    assert finding["message"] in told.out and "things are damaged" in told.err


def test_verify_counts_what_no_commit_names(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    from svc.database import Database

    with Database(database) as opened:
        opened.store_bytes(os.urandom(300_000))
        assert run("verify", "-D", database) == 0
    assert "of the records belong to no commit yet, or to none any more." in capsys.readouterr().out


def test_a_command_of_a_plugin_needs_it_enabled_in_the_database(database: str) -> None:
    with pytest.raises(PluginMissing, match="svc plugins enable files"):
        open_database(database, "files")
    with open_database(database, read_only=True) as opened:
        assert opened.read_only


def test_a_reader_that_has_enough_ends_it_silently(database: str) -> None:
    program = f'{sys.executable} -c "from svc_cli import main; main()" info -D {database} --json'
    reader, writer = os.pipe()
    os.close(reader)
    command = ["bash", "-c", f"exec {program}"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_numbers_are_readable() -> None:
    assert [readable_bytes(size) for size in (0, 1023, 1536, 5 * 1024**3)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 GiB",
    ]
    assert readable_time(0) == "1970-01-01 00:00:00 UTC"
    assert readable_time(None) == "-"


def exit_codes() -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for name in svc.errors.__all__:
        kind = getattr(svc.errors, name)
        if issubclass(kind, SvcError):
            found.setdefault(kind.exit_code, set()).add(name)
    return found


def test_the_documentation_lists_every_exit_code() -> None:
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]*) \|$", OPERATING.read_text(), re.MULTILINE)
    documented = {int(code): set(re.findall(r"`(\w+)`", names)) for code, names in rows}
    for code, names in exit_codes().items():
        assert documented[code] == names
    assert {0, 130, 141} <= set(documented)


@pytest.mark.parametrize(
    "words",
    [
        ("info",),
        ("status",),
        ("verify",),
        ("plugins", "list"),
        ("plugins", "doctor"),
        ("start", "--auth", "disabled"),
        ("background",),
    ],
)
def test_what_cannot_be_a_file_is_no_database(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_a_file = words[0] in ("verify", "start", "background")
    for given in ("http://127.0.0.1:6830" if needs_a_file else "ftp://127.0.0.1:6830", "s3://bucket/x"):
        assert run(*words, "-D", given) == 2
        said = capsys.readouterr().err
        assert said.startswith("svc: --database")
        assert given in said
        assert "the path of a database file" in said
    assert run(*words, "-D", "") == 2
    assert "empty" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("info",), ("status",), ("verify",), ("background",)])
def test_a_directory_is_no_database(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "-D", str(tmp_path)) == 6
    assert capsys.readouterr().err.endswith("is a directory, not an svc database.\n")


def test_numbers_have_the_form_of_their_noun() -> None:
    assert [counted(count, "entry") for count in (0, 1, 2000)] == ["0 entries", "1 entry", "2,000 entries"]
    assert counted(1, "commit") == "1 commit"
    assert [counted(0, noun) for noun in ("key", "day")] == ["0 keys", "0 days"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("redirection", "code"),
    [(">/dev/full", 9), (">&-", 0), ("2>&- >&-", 0), (r"| (exec 0<&-; sleep 1); exit ${PIPESTATUS[0]}", 141)],
)
def test_an_output_that_cannot_be_written(
    database: str, unbuffered: str, redirection: str, code: int
) -> None:
    program = f"{sys.executable} -c 'import svc_cli; svc_cli.main()' info -D {database}"
    before = Path(database).read_bytes()
    script = f"{program} {redirection}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert Path(database).read_bytes() == before


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("words", "code"),
    [("info -D nowhere.svcdb", 3), ("info -D nowhere.svcdb --json", 3), ("info --nothing", 2)],
)
def test_an_error_that_cannot_be_written_keeps_its_exit_code(
    tmp_path: Path, unbuffered: str, words: str, code: int
) -> None:
    script = f"{sys.executable} -c 'import svc_cli; svc_cli.main()' {words} 2>/dev/full"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    assert subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment).returncode == code


def test_a_place_that_takes_no_files_is_not_called_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("start", "--auth", "disabled", "-D", "/proc/x.svcdb") == 5
    assert "the directory /proc takes no files" in capsys.readouterr().err
    assert run("start", "--auth", "disabled", "-D", "none/x.svcdb") == 3
    assert "none does not exist" in capsys.readouterr().err


COMMANDS = [home for descriptor in load_descriptors() for home in descriptor.commands]


@pytest.mark.parametrize("home", COMMANDS, ids=[home.name for home in COMMANDS])
def test_a_command_of_a_plugin_has_the_name_and_the_line_that_the_list_shows(home: CommandHome) -> None:
    command = load_command(home.home)
    assert command.name == home.name
    assert command.get_short_help_str(limit=100).rstrip(".") == home.summary.rstrip(".")
