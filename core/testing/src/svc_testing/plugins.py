"""The contract of every plugin: light, alone with the kernel, declared, and gone when it is disabled."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from svc.database import Database
from svc.plugins import (
    ActivePlugins,
    PluginDescriptor,
    Plugins,
    SystemPaths,
    describe_plugins,
    disable,
    enable,
    enabled_plugins,
    load_descriptors,
    load_plugins,
)
from svc_testing.extensions import import_alone, used_by

if TYPE_CHECKING:
    import click

__all__ = ["PluginContract", "commands_of"]

PUBLIC_PACKAGES = frozenset(
    {
        *("svc", "svc.errors", "svc.plugin", "svc.operations.system", "svc.operations.system_models"),
        *("svc_maintenance.transfer", "svc_maintenance.verification", "svc_cli", "svc_client", "svc_testing"),
    }
)
PUBLIC_MODULES = ("api", "models", "operations")
"""Of another plugin."""
HEAVY_MODULES = ("click", "falcon", "gevent", "gunicorn", "lmdb")


class PluginContract:
    """Tests of an installed plugin. A subclass sets ``plugin_id``.

    Attributes:
        plugin_id: the plugin under test.
        settings: settings to enable it with, if it has some without defaults.
    """

    plugin_id: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}

    def used(self) -> list[str]:
        """The plugin and those that it needs, which come first."""
        return used_by(self.plugin_id)

    def enable(self, database: Database, plugins: Plugins) -> None:
        """Enables the plugin, and first those that it needs."""
        for plugin_id in self.used():
            enable(database, plugins, plugin_id, self.settings if plugin_id == self.plugin_id else {})

    def descriptor(self) -> PluginDescriptor:
        """The plugin's descriptor, after a boot with this plugin and those that it needs."""
        plugins = load_plugins(self.used())
        assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
        return plugins.descriptors[self.plugin_id]

    def test_loads_alone_with_only_the_kernel(self) -> None:
        """It boots with those that it needs and no other plugin; every route declares its permission."""
        from svc.pipeline import check_route

        plugins = load_plugins(self.used(), check_route=check_route)
        assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
        assert sorted(plugins.descriptors) == sorted(self.used())

    def test_its_commands_have_the_name_and_the_line_that_the_list_shows(self) -> None:
        """``svc --help`` shows them without importing any."""
        commands = commands_of(self.plugin_id)
        for home in self.descriptor().commands:
            command = commands[home.name]
            assert command.name == home.name
            assert command.get_short_help_str(limit=100).rstrip(".") == home.summary.rstrip(".")

    def test_its_descriptor_is_light(self) -> None:
        """Reading the descriptor imports neither the implementation nor the server's libraries."""
        descriptor = self.descriptor()
        code = (
            "from importlib.metadata import entry_points; "
            f"list(entry_points(group='svc.plugins', name={self.plugin_id!r}))[0].load(); "
            "print(*sys.modules)"
        )
        loaded = import_alone(code).split()
        assert _module(descriptor) not in loaded
        assert descriptor.families not in loaded
        assert not [name for name in HEAVY_MODULES if name in loaded]

    def test_what_its_extensions_import_is_light(self) -> None:
        """A module of families imports neither the implementation nor the server's libraries."""
        descriptor = self.descriptor()
        if descriptor.families is None:
            return
        loaded = import_alone(f"import {descriptor.families}; print(*sys.modules)").split()
        assert _module(descriptor) not in loaded
        assert not [name for name in HEAVY_MODULES if name in loaded]

    def test_a_short_command_does_not_import_its_families(self) -> None:
        """A boot for commands alone imports neither the module of its families nor what needs it."""
        descriptor = self.descriptor()
        if descriptor.families is None:
            return
        code = (
            "from svc.plugins import load_plugins; "
            f"load_plugins({self.used()!r}, families=()); print(*sys.modules)"
        )
        assert descriptor.families not in import_alone(code).split()

    def test_it_imports_only_what_is_public(self) -> None:
        """It imports what is public of svc, and of plugins that it needs the api and the operations."""
        descriptor = self.descriptor()
        package = descriptor.package
        others = load_plugins(sorted({*descriptor.drivers, *descriptor.needs})).descriptors.values()
        needed = {other.package for other in others}
        permitted = {*PUBLIC_PACKAGES, *(f"{name}.{part}" for name in needed for part in PUBLIC_MODULES)}
        offences = [
            f"{file.name}: {module}"
            for file, module in _imports(package)
            if not _is_permitted(module, package, permitted)
        ]
        assert not offences

    def test_enabling_lasts_and_disabling_leaves_nothing(self, tmp_path: Path) -> None:
        """Another opening sees it enabled; after it is disabled the database has no record of it."""
        plugins = load_plugins(self.used())
        path = tmp_path / "plugin.svcdb"
        with Database(path) as database:
            self.enable(database, plugins)
        with Database(path) as database:
            plugin = enabled_plugins(database, plugins)[self.plugin_id]
            assert plugin.problem is None
            assert plugin.version == plugins.descriptors[self.plugin_id].version
            disable(database, plugins, self.plugin_id)
            assert self.plugin_id not in enabled_plugins(database, plugins)
            assert database.system().get(("plugins", self.plugin_id)) is None

    def test_it_starts_and_stops_as_often_as_asked(self, tmp_path: Path) -> None:
        """Starting, stopping and being enabled again work in one process, as in a worker that runs on."""
        plugins = load_plugins(self.used())
        with Database(tmp_path / "plugin.svcdb") as database:
            self.enable(database, plugins)
            for _ in range(2):
                active = ActivePlugins(plugins, database)
                assert self.plugin_id in active.start()
                assert active.findings() == ()
                disable(database, plugins, self.plugin_id)
                assert not active.is_active(self.plugin_id)
                active.stop()
                self.enable(database, plugins)
            owners = SystemPaths(plugins.descriptors.values())
            system = database.system()
            foreign = list(owners.undeclared(database.objects, system.root))
            assert not foreign, (
                f"It writes below paths of the system tree that no descriptor declares: {foreign}"
            )

    def test_a_report_on_it_can_be_shown(self, tmp_path: Path) -> None:
        """What people are shown holds its names, and no secret."""
        import msgspec

        plugins = load_plugins(self.used())
        with Database(tmp_path / "plugin.svcdb") as database:
            self.enable(database, plugins)
            report = next(item for item in describe_plugins(plugins, database) if item.id == self.plugin_id)
        assert report.enabled
        assert report.problem is None
        assert msgspec.json.encode(report)


def commands_of(plugin_id: str) -> dict[str, click.Command]:
    """Returns the commands of an installed plugin, imported, by their names."""
    from svc_cli.lazy_command import load_command

    (descriptor,) = load_descriptors((plugin_id,))
    return {home.name: load_command(home.home) for home in descriptor.commands}


def _module(descriptor: PluginDescriptor) -> str | None:
    return None if descriptor.implementation is None else descriptor.implementation.partition(":")[0]


def _imports(package: str) -> Iterator[tuple[Path, str]]:
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


def _is_permitted(module: str, package: str, permitted: Collection[str]) -> bool:
    top = module.partition(".")[0]
    if top == package or module in permitted:
        return True
    return top != "svc" and not top.startswith("svc_")
