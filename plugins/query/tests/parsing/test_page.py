"""The plugin that the page about parsers makes is one: installed as it stands there, its own test passes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from svc_testing import DistributionFactory

PAGE = Path(__file__).parents[4] / "docs" / "plugins" / "writing-a-parser.md"
FILES = dict(
    re.findall(
        r"^`([\w/.]+\.py)`:\n\n```python\n(.*?)^```$",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)


def test_the_plugin_of_the_page_passes_its_test(tmp_path: Path) -> None:
    test = tmp_path / "tests" / "test_subtitles.py"
    test.parent.mkdir()
    test.write_text(FILES.pop("tests/test_subtitles.py"))
    factory = DistributionFactory(tmp_path / "installed", in_process=False)
    factory.install(
        "acme-subtitles",
        modules={name.removesuffix(".py").replace("/", "."): code for name, code in FILES.items()},
        entry_points={"acme.subtitles": "acme_subtitles.descriptor:PLUGIN"},
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--import-mode=importlib",
            str(test),
        ],
        cwd=tmp_path,
        env=factory.environment(os.environ),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
