"""One list of what a plugin may import: the module and what type checkers read say the same."""

from __future__ import annotations

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import svc
from svc import plugin


def test_type_checkers_read_the_same_names() -> None:
    stub = Path(str(plugin.__file__)).with_suffix(".pyi")
    read = {
        alias.name: node.module
        for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert read == plugin.HOMES


@pytest.mark.parametrize("module", [svc, plugin], ids=["svc", "svc.plugin"])
def test_every_name_is_there(module) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_a_name_is_what_its_home_publishes() -> None:
    for name, home in plugin.HOMES.items():
        assert getattr(plugin, name) is getattr(importlib.import_module(home), name), name
        assert name in importlib.import_module(home).__all__, f"{home} does not publish {name}"


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = plugin.nothing


def test_the_list_is_found_in_a_zip_file_too(tmp_path: Path) -> None:
    package = Path(str(svc.__file__)).parent
    archive = shutil.make_archive(str(tmp_path / "svc"), "zip", package.parent, package.name)
    program = "import svc.plugin; print(svc.plugin.__file__, len(svc.plugin.HOMES))"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": archive},
        check=True,
        capture_output=True,
        text=True,
    )
    assert result.stdout.split() == [f"{archive}/svc/plugin.py", str(len(plugin.HOMES))]
