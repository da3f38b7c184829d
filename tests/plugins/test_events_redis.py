"""The sink of ``contrib/events-redis``: installed beside svc its own tests pass, and its page quotes it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .installation import ROOT, Installation, Wheelhouse  # noqa: TID252

SOURCE = ROOT / "contrib" / "events-redis"
PAGE = ROOT / "docs" / "plugins" / "writing-an-event-sink.md"
QUOTED = re.compile(r"^`([\w.]+)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BESIDE = ("core/kernel", "core/client", "core/worker", "core/server", "core/testing", "plugins/events")

# Distributions are built and installed, which takes minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)


def test_its_own_tests_pass_where_it_is_installed(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    installed = Installation(tmp_path / "venv")
    installed.add(*wheelhouse.wheels(*BESIDE, "contrib/events-redis"), "pytest")
    done = subprocess.run(
        [installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
         str(SOURCE / "tests")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "code"), QUOTED.findall(PAGE.read_text(encoding="utf-8")))
def test_the_page_quotes_it_word_for_word(name: str, code: str) -> None:
    assert code in (SOURCE / "src" / "svc_events_redis" / name).read_text(encoding="utf-8")
