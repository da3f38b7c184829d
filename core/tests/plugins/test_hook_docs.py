"""The pages about hooks say what the code says, and their samples work."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from svc.pipeline import check_route
from svc.plugins import hookspecs, load_plugins
from svc.plugins.hook_check import HOOK_NAMES
from svc.plugins.registries import make_registries

PAGES = Path(__file__).parents[3] / "docs" / "hooks"
SAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def signatures():
    tree = ast.parse(inspect.getsource(hookspecs))
    return {
        node.name: f"{node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_hook_has_a_page_and_every_page_a_hook():
    assert {page.stem for page in PAGES.glob("svc_*.md")} == set(signatures()) == HOOK_NAMES


@pytest.mark.parametrize("name", sorted(HOOK_NAMES))
def test_the_heading_is_the_exact_signature(name):
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# `{signatures()[name]}`"


@pytest.mark.parametrize("name", sorted(HOOK_NAMES))
def test_the_sample_is_a_plugin_that_loads(name, install):
    samples = SAMPLE.findall((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert samples
    for number, sample in enumerate(samples):
        assert f"def {name}(" in sample
        plugin_id = install(f"{name}_{number}", sample, plugin_id=f"docs.sample{number}")
        plugins = load_plugins([plugin_id], check_route=check_route)
        assert plugins.problems == ()
        family = name.removeprefix("svc_register_")
        if family in plugins.registries.named():
            assert len(plugins.registries.named()[family]) >= 1
        else:
            assert name in plugins.hooks[plugin_id]


def test_the_index_names_every_hook_once():
    table = re.findall(
        r"^\| \[`(svc_\w+)`\]\(\1\.md\) \|", (PAGES / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(table) == sorted(HOOK_NAMES)


@pytest.mark.parametrize("name", sorted(HOOK_NAMES))
def test_every_hook_says_when_it_is_called(name):
    assert "alled" in (getattr(hookspecs, name).__doc__ or "")


def test_every_registry_has_a_hook_and_the_other_way_round():
    assert {f"svc_register_{family}" for family in make_registries().named()} == {
        name for name in HOOK_NAMES if name.startswith("svc_register_")
    }
