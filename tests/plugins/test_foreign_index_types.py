"""Index types from outside, installed beside svc: ``contrib/index-vector``, and that of the documentation.

Their own tests pass, and the page quotes the first.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from svc_testing.hook_pages import files_of_page

from .installation import ROOT, Installation, Wheelhouse  # noqa: TID252
from .test_third_party import write_distribution  # noqa: TID252

SOURCE = ROOT / "contrib" / "index-vector"
PAGE = ROOT / "docs" / "plugins" / "writing-an-index-type.md"
QUOTED = re.compile(r"^`svc_index_vector/([\w.]+)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BESIDE = (
    "core/kernel", "core/cli", "core/client", "core/worker", "core/server", "core/testing", "plugins/query",
    "plugins/index-exact", "plugins/parsers",
)  # fmt: skip

# Distributions are built and installed, which takes minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)


def test_their_own_tests_pass_where_they_are_installed(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    sample = write_distribution(tmp_path / "acme-domain", "acme.domain", "acme_domain", files_of_page(PAGE))
    installed = Installation(tmp_path / "venv")
    svc = wheelhouse.wheels(*BESIDE, "contrib/index-vector")
    installed.add(*svc, *wheelhouse.build(sample), "pytest", "hypothesis")
    for tests in (SOURCE / "tests", sample / "tests"):
        done = subprocess.run(
            [installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
             str(tests)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=180,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_quotes_it_word_for_word() -> None:
    quoted = QUOTED.findall(PAGE.read_text(encoding="utf-8"))
    assert quoted
    for name, code in quoted:
        assert code in (SOURCE / "src" / "svc_index_vector" / name).read_text(encoding="utf-8")
