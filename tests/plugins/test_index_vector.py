"""The index type of ``contrib/index-vector``: installed beside svc its own tests pass, and its page quotes it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .test_third_party import ROOT, Installation, copy_source  # noqa: TID252

SOURCE = ROOT / "contrib" / "index-vector"
PAGE = ROOT / "docs" / "plugins" / "writing-an-index-type.md"
QUOTED = re.compile(r"^`svc_index_vector/([\w.]+)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BESIDE = ("core/kernel", "core/client", "core/worker", "core/server", "core/testing", "plugins/query")

# Distributions are built and installed, which takes minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)


def test_its_own_tests_pass_where_it_is_installed(tmp_path: Path) -> None:
    installed = Installation(tmp_path / "venv")
    sources = [str(copy_source(name, tmp_path / name)) for name in (*BESIDE, "contrib/index-vector")]
    installed.add(*sources, "pytest")
    done = subprocess.run(
        [installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
         str(SOURCE / "tests")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_quotes_it_word_for_word() -> None:
    quoted = QUOTED.findall(PAGE.read_text(encoding="utf-8"))
    assert quoted
    for name, code in quoted:
        assert code in (SOURCE / "src" / "svc_index_vector" / name).read_text(encoding="utf-8")
