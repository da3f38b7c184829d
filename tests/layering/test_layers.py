"""Who may import whom, how large a module may be, and what may not stand in the sources."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Collection
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from svc.plugins import PluginDescriptor
from svc.plugins.descriptor import ENTRY_POINT_GROUP

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "core" / "kernel" / "src" / "svc"
CORE = {path.name: path for path in sorted(ROOT.glob("core/*/src/*")) if (path / "__init__.py").exists()}
PLUGINS = sorted(path.parent.parent for path in ROOT.glob("plugins/*/src/*/__init__.py"))
PUBLIC = {
    *("svc", "svc.errors", "svc.plugin", "svc.operations.system", "svc.operations.system_models"),
    *("svc_maintenance.transfer", "svc_maintenance.verification", "svc_cli", "svc_client", "svc_testing"),
}
"""What a plugin may import, each as a whole, and only what ``__all__`` names."""

OF_PLUGINS = {"svc_cli", "svc_client", "svc_maintenance"}
"""Distributions of the core beside the kernel that a plugin may import, if it declares them."""

MOST_LINES = 500


def package_of(plugin: Path) -> str:
    (package,) = [path.parent.name for path in plugin.glob("*/__init__.py")]
    return package


PACKAGES = {package_of(plugin): plugin for plugin in PLUGINS}


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if ".egg-info" not in path.parts)


@functools.cache
def imports(path: Path) -> list[tuple[str, str | None, int]]:
    """Every import of a module, at any depth of nesting: module, name (None: the module itself), line."""
    found: list[tuple[str, str | None, int]] = []
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found += [(alias.name, None, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            found += [(node.module, alias.name, node.lineno) for alias in node.names]
    return found


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


MAY_IMPORT = {
    "svc": set(),
    "svc_cli": {"svc"},
    "svc_maintenance": {"svc", "svc_cli"},
    "svc_worker": set(),
    "svc_server": {"svc", "svc_cli", "svc_worker"},
    "svc_client": {"svc"},
    "svc_testing": {"svc", "svc_cli", "svc_server"},
}
"""What each distribution of the core may import of the others."""


def test_the_core_is_made_of_layers() -> None:
    assert sorted(CORE) == sorted(MAY_IMPORT)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for package, allowed in MAY_IMPORT.items()
        for path in modules(CORE[package])
        for module, _, line in imports(path)
        if re.match(r"svc(_|$|\.)", module) and module.partition(".")[0] not in {package, *allowed}
    ]
    assert found == []


def test_no_modules_of_the_kernel_import_each_other_in_a_circle() -> None:
    """Types may name each other. An operation finds what carries it out when it is called."""
    names = {
        ".".join(("svc", *path.relative_to(KERNEL).with_suffix("").parts)): path for path in modules(KERNEL)
    }
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    del names["svc.operations.system"]
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        typing_only = {
            line
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for line in range(node.lineno, node.end_lineno or 0)
        }
        found = (
            f"{module}.{imported}" if f"{module}.{imported}" in names else module
            for module, imported, line in imports(path)
            if line - 1 not in typing_only
        )
        graph[name] = {one for one in found if one in names} - {name}
    TopologicalSorter(graph).prepare()  # CycleError names the modules of a circle


def test_the_tests_of_the_worker_need_the_worker_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in modules(ROOT / "core" / "worker" / "tests")
        for module, _, line in imports(path)
        if re.match(r"svc(_|$|\.)", module) and module.partition(".")[0] != "svc_worker"
    ]
    assert found == []


def test_one_module_uses_what_is_private_to_falcon() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in (*CORE.values(), *PACKAGES.values())
        for path in modules(folder)
        if path != KERNEL / "pipeline" / "framework.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\b(req|resp|falcon\.\w+)\._[a-z]", line) and "gunicorn" not in path.read_text()
    ]
    assert found == []


def test_the_kernel_needs_no_server() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in modules(KERNEL)
        for module, _, line in imports(path)
        if module.partition(".")[0] in ("gunicorn", "gevent", "greenlet")
    ]
    assert found == []


@functools.cache
def descriptors() -> dict[str, PluginDescriptor]:
    """The descriptors of our plugins, by package."""
    return {
        entry.module.partition(".")[0]: entry.load()
        for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
        if entry.module.partition(".")[0] in PACKAGES
    }


def apis_of(plugin_ids: Collection[str]) -> set[str]:
    """The public modules of the plugins that a descriptor names, of those that are ours."""
    return {
        module
        for package, item in descriptors().items()
        if item.id in plugin_ids
        for module in (f"{package}.api", *item.operations, *[models_of(name) for name in item.operations])
    }


def models_of(operations: str) -> str:
    """The module of what operations take and answer, beside the one that declares them."""
    return operations.rpartition(".")[0] + ".models"


def forbidden_imports(folder: Path, package: str, apis: set[str]) -> list[str]:
    found = []
    for path in modules(folder):
        for module, name, line in imports(path):
            place = f"{path.name}:{line}"
            top = module.partition(".")[0]
            if top == "svc_testing" and path.parent == folder / "testing":
                # The contracts that a driver ships are tests.
                continue
            if top.startswith("svc_") and top not in {package, *OF_PLUGINS} and module not in apis:
                found.append(f"{place}: another plugin, {module}")
            if top not in {"svc", *OF_PLUGINS} and module not in apis:
                continue
            if name is not None and f"{module}.{name}" in PUBLIC:
                continue
            if module not in PUBLIC | apis:
                found.append(f"{place}: private, {module}")
            elif name is not None and name not in importlib.import_module(module).__all__:
                found.append(f"{place}: {module} does not publish {name}")
    return found


def test_every_plugin_is_installed_with_its_descriptor() -> None:
    assert set(descriptors()) == set(PACKAGES)


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_plugin_imports_the_public_kernel_itself_and_what_it_extends_or_needs(package: str) -> None:
    descriptor = descriptors()[package]
    # Its own operations may be declared in a package that it needs.
    apis = apis_of({descriptor.id, *descriptor.drivers, *descriptor.needs})
    assert forbidden_imports(PACKAGES[package] / package, package, apis) == []


def test_of_another_plugin_only_the_public_module_may_be_imported_and_if_it_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = types.ModuleType("svc_driver.api")
    api.__all__ = ["FAMILIES"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "svc_driver.api", api)
    (tmp_path / "extension.py").write_text(
        "from svc_driver.api import FAMILIES\n"
        "from svc_driver.api import hidden\n"
        "from svc_driver.plugin import Driver\n"
        "import svc_mine.other\n"
    )
    undeclared = forbidden_imports(tmp_path, "svc_mine", set())
    assert [line.partition(": ")[2] for line in undeclared] == [
        "another plugin, svc_driver.api",
        "another plugin, svc_driver.api",
        "another plugin, svc_driver.plugin",
    ]
    declared = forbidden_imports(tmp_path, "svc_mine", {"svc_driver.api"})
    assert [line.partition(": ")[2] for line in declared] == [
        "svc_driver.api does not publish hidden",
        "another plugin, svc_driver.plugin",
    ]


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
    descriptor = descriptors()[package]
    needed, extended = (
        {module.partition(".")[0] for module in apis_of(plugin_ids)}
        for plugin_ids in (descriptor.needs, descriptor.drivers)
    )
    imported = {
        module.partition(".")[0] for path in modules(PACKAGES[package]) for module, _, _ in imports(path)
    }
    ours = {name for name in required if name.startswith("svc_")}
    assert ours & {"svc_core", *OF_PLUGINS} == {"svc_core", *(OF_PLUGINS & imported)}
    assert needed <= ours - {"svc_core", *OF_PLUGINS} <= needed | extended


def sources() -> list[Path]:
    folders = [*CORE.values(), ROOT / "src", *PLUGINS, ROOT / "contrib"]
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
OF_OTHERS = ("svc_docs/static/_swagger-ui/", "svc_docs/pages/")
"""Programs of others that are packaged as they are, and what is built."""
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
    return [
        path
        for path in candidates
        if path.is_file() and path.suffix in endings and not any(part in str(path) for part in OF_OTHERS)
    ]


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
