"""Who may import whom, how large a module may be, and what may not stand in the sources."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "core" / "src" / "svc"
PLUGINS = sorted(path.parent.parent for path in ROOT.glob("plugins/*/src/*/__init__.py"))
PUBLIC = {
    "svc",
    "svc.errors",
    "svc.hashing",
    "svc.lines",
    "svc.paths",
    "svc.tree",
    "svc.database",
    "svc.plugins",
    "svc.pipeline",
    "svc.cli",
    "svc.testing",
}
"""The packages of the kernel that a plugin may import, each as a whole, and only what ``__all__`` names."""

MOST_LINES = 500


def package_of(plugin: Path) -> str:
    (package,) = [path.parent.name for path in plugin.glob("*/__init__.py")]
    return package


PACKAGES = {package_of(plugin): plugin for plugin in PLUGINS}


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if ".egg-info" not in path.parts)


def imports(path: Path) -> Iterator[tuple[str, str | None, int]]:
    """Every import of a module, at any depth of nesting: module, name (None: the module itself), line."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            for alias in node.names:
                yield node.module, alias.name, node.lineno


def test_there_are_plugins_to_look_at() -> None:
    assert {"svc_files", "svc_auth_disabled"} <= set(PACKAGES)


def test_the_kernel_imports_no_plugin() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in modules(KERNEL)
        for module, _, line in imports(path)
        if re.match(r"svc_|tests?\b", module)
    ]
    assert found == []


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_plugin_imports_the_public_kernel_and_itself(package: str) -> None:
    found = []
    for path in modules(PACKAGES[package] / package):
        for module, name, line in imports(path):
            place = f"{path.relative_to(ROOT)}:{line}"
            top = module.partition(".")[0]
            if top.startswith("svc_") and top != package:
                found.append(f"{place}: another plugin, {module}")
            if top != "svc":
                continue
            if name is not None and f"{module}.{name}" in PUBLIC:
                continue
            if module not in PUBLIC:
                found.append(f"{place}: private, {module}")
            elif name is not None and name not in importlib.import_module(module).__all__:
                found.append(f"{place}: {module} does not publish {name}")
    assert found == []


def test_the_public_packages_publish_what_exists() -> None:
    for name in sorted(PUBLIC):
        module = importlib.import_module(name)
        assert module.__doc__, name
        assert len(set(module.__all__)) == len(module.__all__), name
        for exported in module.__all__:
            assert hasattr(module, exported), f"{name}.{exported}"


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_plugin_declares_the_distributions_that_it_imports(package: str) -> None:
    config = ConfigParser()
    config.read(PACKAGES[package].parent / "setup.cfg")
    required = {
        re.split(r"[\s<>=!~\[;]", line)[0].lower().replace("-", "_")
        for line in config["options"]["install_requires"].split("\n")
        if line.strip()
    }
    assert "svc_core" in required
    assert not {name for name in required if name.startswith("svc_")} - {"svc_core"}


def sources() -> list[Path]:
    folders = [KERNEL, ROOT / "src", *PLUGINS, ROOT / "contrib"]
    return [path for folder in folders if folder.exists() for path in modules(folder)]


def test_modules_are_short() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in sources()}
    assert {path: count for path, count in lengths.items() if count >= MOST_LINES} == {}


def test_every_package_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_no_package_is_a_drawer_for_everything() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}
    assert [path for path in sources() if path.stem in vague or path.parent.name in vague] == []


UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|NotImplemented" r"Error)\b")
HOME = re.compile(r"(?<![\w.])/(home|Users)/\w+|/ro" r"ot/(?!\w*\.svc)")
PRIVATE_HOST = re.compile(r"https?://(10|192\.168|172\.(1[6-9]|2\d|3[01]))\.\d")


def texts() -> list[Path]:
    """Every text file of the project that git knows or would add."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        candidates = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        candidates = [
            path for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.parts)
        ]
    endings = {".py", ".md", ".cfg", ".toml", ".ini", ".lock", ".html", ".css", ".js", ""}
    return [path for path in candidates if path.is_file() and path.suffix in endings]


@pytest.mark.parametrize("pattern", [UNFINISHED, HOME, PRIVATE_HOST], ids=["unfinished", "home", "host"])
def test_nothing_is_unfinished_or_tied_to_one_machine(pattern: re.Pattern[str]) -> None:
    found = []
    for path in texts():
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if match := pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert found == []


def test_the_lock_file_names_only_public_indexes() -> None:
    with (ROOT / "uv.lock").open("rb") as file:
        lock = tomllib.load(file)
    hosts = {
        re.sub(r"^https://([^/]+)/.*", r"\1", url)
        for package in lock["package"]
        for url in [
            package["source"].get("registry", ""),
            *[artifact.get("url", "") for artifact in [package.get("sdist", {}), *package.get("wheels", [])]],
        ]
        if url
    }
    assert hosts <= {"pypi.org", "files.pythonhosted.org"}
