"""The contract of every plugin: light, alone with the kernel, declared, and gone when it is disabled."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from svc.database import Database
from svc.plugins import (
    ActivePlugins,
    PluginDescriptor,
    describe_plugins,
    disable,
    enable,
    enabled_plugins,
    load_plugins,
)

__all__ = ["PluginContract"]

PUBLIC_PACKAGES = frozenset(
    {
        "svc",
        "svc.cli",
        "svc.database",
        "svc.errors",
        "svc.hashing",
        "svc.lines",
        "svc.log",
        "svc.paths",
        "svc.pipeline",
        "svc.plugins",
        "svc.testing",
        "svc.tree",
    }
)
HEAVY_MODULES = ("click", "falcon", "gevent", "gunicorn", "lmdb")


class PluginContract:
    """Tests of an installed plugin. A subclass sets ``plugin_id``.

    Attributes:
        plugin_id: the plugin under test.
        settings: settings to enable it with, if it has some without defaults.
    """

    plugin_id: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}

    def descriptor(self) -> PluginDescriptor:
        """The plugin's descriptor, after a boot with this plugin alone."""
        plugins = load_plugins([self.plugin_id])
        assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
        return plugins.descriptors[self.plugin_id]

    def test_loads_alone_with_only_the_kernel(self) -> None:
        """No other plugin is needed for the boot, and every route declares what it needs."""
        from svc.pipeline import check_route

        plugins = load_plugins([self.plugin_id], check_route=check_route)
        assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
        assert list(plugins.descriptors) == [self.plugin_id]

    def test_its_descriptor_is_light(self) -> None:
        """Reading the descriptor imports neither the implementation nor the server's libraries."""
        descriptor = self.descriptor()
        code = (
            "import sys; from importlib.metadata import entry_points; "
            f"list(entry_points(group='svc.plugins', name={self.plugin_id!r}))[0].load(); "
            "print(*sys.modules)"
        )
        environment_path = [path for path in sys.path if path]
        loaded = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:] = {environment_path!r}; " + code],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        assert descriptor.module not in loaded
        assert not [name for name in HEAVY_MODULES if name in loaded]

    def test_it_imports_only_what_is_public(self) -> None:
        """It imports packages of svc that are listed as public, and no other plugin."""
        package = self.descriptor().module.partition(".")[0]
        offences = [
            f"{file.name}: {module}"
            for file, module in _imports(package)
            if not _is_permitted(module, package)
        ]
        assert not offences

    def test_enabling_lasts_and_disabling_leaves_nothing(self, tmp_path: Path) -> None:
        """Another opening sees it enabled; after it is disabled the database has no record of it."""
        plugins = load_plugins([self.plugin_id])
        path = tmp_path / "plugin.svcdb"
        with Database(path) as database:
            enable(database, plugins, self.plugin_id, self.settings)
        with Database(path) as database:
            plugin = enabled_plugins(database, plugins)[self.plugin_id]
            assert plugin.problem is None
            assert plugin.version == plugins.descriptors[self.plugin_id].version
            disable(database, plugins, self.plugin_id)
            assert self.plugin_id not in enabled_plugins(database, plugins)
            assert database.system().get(("plugins", self.plugin_id)) is None

    def test_it_starts_and_stops_as_often_as_asked(self, tmp_path: Path) -> None:
        """Starting, stopping and being enabled again work in one process, as in a worker that runs on."""
        plugins = load_plugins([self.plugin_id])
        with Database(tmp_path / "plugin.svcdb") as database:
            enable(database, plugins, self.plugin_id, self.settings)
            for _ in range(2):
                active = ActivePlugins(plugins, database)
                assert self.plugin_id in active.start()
                assert active.problems == ()
                disable(database, plugins, self.plugin_id)
                assert not active.is_active(self.plugin_id)
                active.stop()
                enable(database, plugins, self.plugin_id, self.settings)

    def test_a_report_on_it_can_be_shown(self, tmp_path: Path) -> None:
        """What people are shown holds its names, and no secret."""
        import msgspec

        plugins = load_plugins([self.plugin_id])
        with Database(tmp_path / "plugin.svcdb") as database:
            enable(database, plugins, self.plugin_id, self.settings)
            report = next(item for item in describe_plugins(plugins, database) if item.id == self.plugin_id)
        assert report.enabled
        assert report.problem is None
        assert msgspec.json.encode(report)


def _imports(package: str) -> Iterator[tuple[Path, str]]:
    """Every module that a package's files import, with the file."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin)
    files = root.parent.rglob("*.py") if spec.submodule_search_locations else [root]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((file, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield file, node.module


def _is_permitted(module: str, package: str) -> bool:
    top = module.partition(".")[0]
    if top == "svc":
        return module in PUBLIC_PACKAGES
    return top == package or not top.startswith("svc_")
