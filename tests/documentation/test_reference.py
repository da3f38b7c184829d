"""The pages that docstrings make: every name that authors of plugins may import, with what it says."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from documentation.conftest import ROOT
from svc import plugin

pytestmark = pytest.mark.timeout(400)
"""Whoever comes first may have to build the pages."""

DRIVERS = sorted(path.parent.name for path in ROOT.glob("plugins/*/src/*/api.py"))
HEADING = re.compile(r"^#{2,4} (\w+)$", re.MULTILINE)


def text_of(pages: Path, name: str) -> str:
    return (pages / "reference" / f"{name}.md").read_text(encoding="utf-8")


def test_every_name_of_svc_plugin_has_its_place_on_one_page(pages: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (pages / "reference").glob("svc.plugin-*.md")]
    assert sorted(name for text in texts for name in HEADING.findall(text)) == sorted(plugin.__all__)


@pytest.mark.parametrize(
    "module", ["svc.errors", "svc_cli", "svc_testing", *(f"{name}.api" for name in DRIVERS)]
)
def test_every_name_of_a_public_module_has_its_place(pages: Path, module: str) -> None:
    assert set(import_module(module).__all__) <= set(HEADING.findall(text_of(pages, module)))


def test_a_page_shows_signature_arguments_and_errors(pages: Path) -> None:
    section = text_of(pages, "svc.plugin-database").partition("## parse_time\n")[2].partition("\n## ")[0]
    assert "def parse_time(" in section
    for part in ("*Arguments:*", "*Raises:*", "`InvalidInput`"):
        assert part in section


def test_methods_of_a_class_are_those_of_its_bases_too(pages: Path) -> None:
    section = text_of(pages, "svc.plugin-database").partition("## Database\n")[2].partition("\n## ")[0]
    for method in ("transaction", "resolve_version", "head_at"):
        assert f"\n`{method}(" in section
