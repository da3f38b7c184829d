"""The examples of ``contrib``: installed beside svc their own tests pass, and their pages quote them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .installation import ROOT, Installation, Wheelhouse  # noqa: TID252

QUOTED = re.compile(r"^`([\w.]+)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SVC = ("core/kernel", "core/cli", "core/client", "core/worker", "core/server", "core/testing")
BESIDE = {
    "auth-oidc": ("plugins/users",),
    "events-redis": ("plugins/events",),
    "portal-jsonl": ("plugins/files", "plugins/portal"),
    "traces-otlp": ("plugins/files",),
}
PAGES = {"auth-oidc": "writing-an-auth-mode.md", "events-redis": "writing-an-event-sink.md"}

# Distributions are built and installed, which takes minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize("name", BESIDE)
def test_its_own_tests_pass_where_it_is_installed(tmp_path: Path, wheelhouse: Wheelhouse, name: str) -> None:
    installed = Installation(tmp_path / "venv")
    installed.add(*wheelhouse.wheels(*SVC, *BESIDE[name], f"contrib/{name}"), "pytest")
    done = subprocess.run(
        [installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
         str(ROOT / "contrib" / name / "tests")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def quotations() -> list[tuple[str, str, str]]:
    """The example, its file and the code, of each quotation in a page."""
    pages = (
        (name, (ROOT / "docs" / "plugins" / page).read_text(encoding="utf-8")) for name, page in PAGES.items()
    )
    return [(name, file, code) for name, page in pages for file, code in QUOTED.findall(page)]


@pytest.mark.parametrize(("name", "file", "code"), quotations())
def test_the_page_quotes_it_word_for_word(name: str, file: str, code: str) -> None:
    package = f"svc_{name.replace('-', '_')}"
    assert code in (ROOT / "contrib" / name / "src" / package / file).read_text(encoding="utf-8")


def test_each_of_these_pages_quotes_something() -> None:
    assert {name for name, _, _ in quotations()} == set(PAGES)
