"""The kernel alone, installed by pip, then the command line: a database for a program that serves nothing."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from .installation import Installation, Wheelhouse  # noqa: TID252

PROGRAM = """
    import importlib.util
    import sys
    from svc import Database

    for absent in ("gevent", "gunicorn", "click", "svc_cli", "svc_maintenance", "svc_server"):
        assert importlib.util.find_spec(absent) is None, absent
    with Database(sys.argv[1]) as database:
        with database.transaction() as transaction:
            transaction.put(("greeting",), b"hello")
    with Database(sys.argv[1], read_only=True) as database:
        version = database.at()
        print(version.read_all(version.get(("greeting",))).decode())
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Wheelhouse) -> str:
    installed = Installation(tmp_path_factory.mktemp("kernel") / "venv")
    installed.add(*wheelhouse.wheels("core/kernel"))
    return installed.python


def test_a_program_reads_and_writes_without_a_server(python: str, tmp_path: Path) -> None:
    program = [python, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "x.svcdb")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_the_command_line_works_and_says_what_other_commands_need(
    tmp_path: Path, wheelhouse: Wheelhouse
) -> None:
    installed = Installation(tmp_path / "venv")
    installed.add(*wheelhouse.wheels("core/kernel", "core/cli"))
    python = installed.python
    svc = Path(python).with_name("svc")
    database = ["-D", str(tmp_path / "x.svcdb")]
    program = textwrap.dedent(PROGRAM).replace('"click", "svc_cli", ', "")
    subprocess.run([python, "-c", program, database[1]], check=True, capture_output=True)
    assert b"commits" in subprocess.run([svc, "info", *database], capture_output=True).stdout
    for command, needed in (("start", "svc-server"), ("verify", "svc-maintenance")):
        started = subprocess.run([svc, command, *database], capture_output=True, text=True)
        assert started.returncode == 2
        assert started.stderr == f"svc: This needs {needed}: 'pip install {needed}'.\n"
