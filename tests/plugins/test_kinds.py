"""``svc plugins new --kind``: a plugin of each kind installs, and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from svc_cli.plugin_template import new_command

from .installation import ROOT, Wheelhouse  # noqa: TID252

KINDS = sorted(path.name for path in (ROOT / "contrib" / "template" / "kinds").iterdir())
SELDOM = "not killed and not cancelled and not run_whose_end and not told_to_end"
"""Kills processes of tasks again and again, which is long; svc's own task types pass it."""

# Distributions are built, and tests run, which takes minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)


def test_there_is_one_of_each_kind() -> None:
    assert set(KINDS) == {
        *("auth", "driver", "index", "operator", "page", "parser", "route", "sink", "task", "view"),
    }


def test_all_pass_their_tests_where_they_are_installed(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    sources = [tmp_path / kind for kind in KINDS]
    for kind, source in zip(KINDS, sources, strict=True):
        new_command.main([f"kinds.{kind}", str(source), "--kind", kind], standalone_mode=False)
        readme = (source / "README.md").read_text(encoding="utf-8")
        assert f"svc plugins enable kinds.{kind} " in readme
        assert len(readme.splitlines()) <= 8
    # They are pure Python: to unpack a wheel is to install it, and here is one environment for all.
    installed = tmp_path / "installed"
    for wheel in wheelhouse.build(*sources):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(installed)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
         "-k", SELDOM, *(str(source / "tests") for source in sources)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
