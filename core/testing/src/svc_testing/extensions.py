"""The contract of every extension of a family: its driver adds what the family itself asks for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from svc.database import Database
from svc.plugins import (
    ActivePlugins,
    Family,
    PluginDescriptor,
    Plugins,
    all_needed,
    disable,
    enable,
    load_descriptors,
    load_plugins,
)

__all__ = ["ExtensionContract", "import_alone", "used_by"]

_ABSENT = """
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
"""


class ExtensionContract:
    """Tests of a thing of a family that a plugin drives.

    The driver subclasses it, sets ``family``, and adds the tests of its contract. An author of an extension
    subclasses that class, sets ``plugin_id``, and gives the fixture ``extension``.

    Attributes:
        family: the family, set by the driver.
        plugin_id: the plugin that adds the extension.
        settings: settings to enable that plugin with, if it has some without defaults.
        driver_settings: the same for the driver.
    """

    family: ClassVar[Family[Any]]
    plugin_id: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    driver_settings: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture
    def extension(self) -> Any:
        """The thing under test, made as the plugin makes it."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'extension'.")

    @pytest.fixture
    def driver_id(self) -> str:
        """The plugin that drives the family, as the descriptor under test names it."""
        extended = self._descriptor().extends
        drivers = [item.partition(":")[0] for item in extended if item.endswith(f":{self.family.name}")]
        assert len(drivers) == 1, f"extends={extended} does not name {self.family.name!r} once."
        return drivers[0]

    def test_the_family_takes_it(self, extension: Any) -> None:
        """It follows the contract of the family, and has a name."""
        registry = self.family.make_registry()
        registry.begin(self.plugin_id)
        registry.add(extension)
        assert len(registry) >= 1

    def test_its_plugin_adds_it(self, extension: Any, driver_id: str) -> None:
        """The plugin registers a thing of this class where its driver is in use."""
        plugins = self._load(driver_id)
        registry = plugins.registries.driven[self.family.name].registry
        assert type(extension) in {type(item.value) for item in registry.of_plugin(self.plugin_id)}

    def test_it_rests_where_its_driver_is_not_allowed(self, driver_id: str) -> None:
        """The plugin loads, and adds nothing to a family that nobody drives; unless it needs the driver."""
        if driver_id in used_by(self.plugin_id):
            return
        plugins = load_plugins(used_by(self.plugin_id))
        assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
        assert self.family.name not in plugins.registries.driven

    def test_it_rests_where_its_driver_is_not_installed(self, driver_id: str) -> None:
        """The plugin imports nothing of its driver before the hook is called; unless it needs the driver."""
        if driver_id in used_by(self.plugin_id):
            return
        module = self._load(driver_id).descriptors[driver_id].families or ""
        code = _ABSENT.format(package=module.partition(".")[0])
        code += (
            "from svc.plugins import load_plugins\n"
            f"print(*[item.message for item in load_plugins({used_by(self.plugin_id)!r}).problems])"
        )
        assert import_alone(code).strip() == ""

    def test_its_driver_finds_it_while_its_plugin_is_enabled(self, driver_id: str, tmp_path: Path) -> None:
        """Enabling and disabling take effect in a running process, and nothing of it stays behind."""
        plugins = self._load(driver_id)
        with Database(tmp_path / "extension.svcdb") as database:
            settings = {driver_id: self.driver_settings}
            for other in used_by(driver_id, self.plugin_id):
                if other != self.plugin_id:
                    enable(database, plugins, other, settings.get(other, {}))
            active = ActivePlugins(plugins, database)
            active.start()
            for _ in range(2):
                assert self.plugin_id not in self._contributors(active, driver_id)
                enable(database, plugins, self.plugin_id, self.settings)
                assert self.plugin_id in self._contributors(active, driver_id)
                disable(database, plugins, self.plugin_id)
            assert self.plugin_id not in self._contributors(active, driver_id)
            assert active.findings() == ()
            active.stop()

    def _descriptor(self) -> PluginDescriptor:
        (found,) = [item for item in load_descriptors() if item.id == self.plugin_id]
        return found

    def _load(self, driver_id: str) -> Plugins:
        plugins = load_plugins(used_by(driver_id, self.plugin_id))
        assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
        return plugins

    def _contributors(self, active: ActivePlugins, driver_id: str) -> set[str]:
        context = active.context(driver_id)
        assert context is not None
        return {item.context.plugin_id for item in context.extensions(self.family).values()}


def used_by(*plugin_ids: str) -> list[str]:
    """The plugins and those that they need, each behind those that it needs itself."""
    return all_needed(plugin_ids, {descriptor.id: descriptor for descriptor in load_descriptors()})


def import_alone(code: str) -> str:
    """Runs code in a new interpreter that finds what this one finds; returns what it prints."""
    path = [item for item in sys.path if item]
    completed = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout
