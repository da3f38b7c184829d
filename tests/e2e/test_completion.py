"""What a shell completes: values of a file and of a server; nothing where anything is wrong."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from svc_blackbox.prepared import run_svc
from svc_cli import completing
from svc_cli.program import COMPLETION_VARIABLE, main, root
from svc_testing import start_server

FILES = {"notes/a.txt": "a", "notes/deep/b.txt": "b", "other.txt": "c"}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completing, "SECONDS", 60.0)


def complete(line: str) -> list[str]:
    """What a shell offers for the last word of a line."""
    *words, typed = line.split(" ")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(COMPLETION_VARIABLE, "bash_complete")
        found = ShellComplete(root, {}, "svc", COMPLETION_VARIABLE).get_completions(words, typed)
    return [item.value for item in found]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("completion")
    for name, text in FILES.items():
        path = base / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    database = base / "data.svcdb"
    for words in (
        ("load", str(base / "tree"), "/"),
        ("snapshot", "create", "monday"),
        ("fork", "create", "draft"),
        ("user", "add", "ann"),
        ("group", "add", "staff"),
    ):
        assert run_svc(*words, "-D", str(database)).returncode == 0
    return database


def check(database: str) -> None:
    of = f"-D {database}"
    assert complete(f"ls {of} /no") == ["/notes/"]
    assert complete(f"cat {of} /notes/") == ["/notes/a.txt", "/notes/deep/"]
    assert complete(f"history {of} /o") == ["/other.txt"]
    assert complete(f"cp {of} /other.txt /no") == ["/notes/"]
    assert complete(f"ls {of} --snapshot m") == ["monday"]
    assert complete(f"snapshot delete {of} ") == ["monday"]
    assert complete(f"snapshot create {of} ") == []
    assert complete(f"fork promote {of} d") == ["draft"]
    assert complete(f"diff {of} --from ") == ["monday", "draft"]
    assert complete(f"user show {of} a") == ["ann"]
    assert complete(f"key list {of} --user ") == ["ann"]
    assert complete(f"group show {of} s") == ["staff"]
    assert complete(f"ls {of} /none/") == []


def test_values_of_a_file(filled: Path) -> None:
    check(str(filled))


def test_values_of_a_server(filled: Path) -> None:
    with start_server(filled, "--auth", "disabled", plugins=None) as server:
        check(server.url)


def test_ids_of_plugins_need_no_database() -> None:
    assert complete("plugins enable index.e") == ["index.exact"]


def test_without_a_database_nothing_is_offered_or_made(tmp_path: Path) -> None:
    assert complete(f"ls -D {tmp_path}/none.svcdb /") == []
    assert complete("ls -D http://127.0.0.1:1 /") == []
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completing, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert complete(f"ls -D http://127.0.0.1:{silent.getsockname()[1]} /") == []


HOSTILE = ("$(touch made)", "`touch made`", "a;touch", "b c", "d\u202ee", "*", "'f", "~g")


def asked(capsys: pytest.CaptureFixture[str], shell: str, line: str) -> str:
    """What the program answers a shell for the last word of a line."""
    typed = line.rpartition(" ")[2]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setenv(COMPLETION_VARIABLE, f"{shell}_complete")
        patch.setenv("COMP_WORDS", f"svc {line}")
        patch.setenv("COMP_CWORD", typed if shell == "fish" else str(len(line.split(" "))))
        main([])
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("hostile")
    (base / "tree").mkdir()
    for name in (*HOSTILE, "plain-\u00e9", "plain+2"):
        (base / "tree" / f"x{name}").write_text("a")
    database = base / "data.svcdb"
    assert run_svc("load", str(base / "tree"), "/", "-D", str(database)).returncode == 0
    for name in ("v$(touch${IFS}made)", "-Dother", "v1"):
        assert run_svc("fork", "create", "-D", str(database), "--", name).returncode == 0
    return database


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_name_that_a_shell_would_run_is_not_offered(
    hostile: Path, shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = asked(capsys, shell, f"ls -D {hostile} /x")
    assert "/xplain-\u00e9" in paths
    assert "/xplain+2" in paths
    assert "/x~g" in paths
    assert [text for text in HOSTILE if text != "~g" and text in paths] == []
    assert "touch" not in paths
    forks = asked(capsys, shell, f"fork promote -D {hostile} ")
    assert "v1" in forks
    assert "touch" not in forks
    assert "-Dother" not in forks
    assert "--json" in asked(capsys, shell, "snapshot list --j")


def test_bash_takes_words_as_they_are(tmp_path: Path) -> None:
    program = tmp_path / "svc"
    program.write_text("#!/bin/sh\necho 'plain,/*'\necho 'plain,a b'\n")
    program.chmod(0o755)
    made = subprocess.run(["svc", "completion", "bash"], capture_output=True, text=True, check=True)
    shown = 'COMP_WORDS=(svc x) COMP_CWORD=1; _svc_completion svc; printf "%s|" "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["bash", "--norc", "-c", f"{made.stdout}\n{shown}"]
    assert subprocess.run(words, env=environment, capture_output=True, text=True).stdout == "/*|a b|"
