"""The plugin of ``contrib/traces-otlp``: installed beside svc its own tests pass."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .installation import ROOT, Installation, Wheelhouse  # noqa: TID252

SOURCE = ROOT / "contrib" / "traces-otlp"
BESIDE = ("core/kernel", "core/client", "core/worker", "core/server", "core/testing", "plugins/files")

# Distributions are built and installed, which takes minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)


def test_its_own_tests_pass_where_it_is_installed(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    installed = Installation(tmp_path / "venv")
    installed.add(*wheelhouse.wheels(*BESIDE, "contrib/traces-otlp"), "pytest")
    done = subprocess.run(
        [installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
         str(SOURCE / "tests")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
