"""A lazy command is named without being imported, and is the command once it runs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from click.testing import CliRunner

from svc_cli.lazy_command import LazyCommand

MODULE = """
import click

@click.command()
@click.argument("word")
@click.option("--twice", is_flag=True)
def echo(word, twice):
    \"\"\"Says a word.\"\"\"
    click.echo(word * (2 if twice else 1))
"""


def test_it_runs_shows_its_help_and_refuses_as_the_command_does(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "lazy_example.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    command = LazyCommand("echo", "lazy_example:echo", "Says a word.")
    assert "lazy_example" not in sys.modules
    assert command.get_short_help_str() == "Says a word."
    runner = CliRunner()
    assert runner.invoke(command, ["ab", "--twice"]).output == "abab\n"
    assert "--twice" in runner.invoke(command, ["--help"]).output
    assert runner.invoke(command, []).exit_code == 2


def test_the_list_of_commands_imports_none_of_them() -> None:
    script = """
        import sys
        from svc_cli import main
        try:
            main(["--help"])
        except SystemExit as end:
            assert not end.code
        for name in ("rich", "falcon", "gunicorn", "gevent", "svc.database", "svc_server"):
            assert name not in sys.modules, name
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
