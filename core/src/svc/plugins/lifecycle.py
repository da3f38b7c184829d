"""Which plugins a process uses for a database, and their start and stop.

The records in the system tree say what is enabled; ``ActivePlugins`` follows them in a running process, so
that enabling and disabling take effect in every worker without a restart where the plugin allows it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from svc.errors import SvcError
from svc.plugins.discovery import PluginProblem, ProblemKind, describe_error
from svc.plugins.enabling import EnabledPlugin, enabled_plugins

if TYPE_CHECKING:
    from svc.database import Database, Head
    from svc.hashing import Hash
    from svc.plugins.loading import Plugins

__all__ = ["ActivePlugins", "PluginContext", "register_views"]

logger = logging.getLogger("svc.plugins")


@dataclass(frozen=True, slots=True)
class PluginContext:
    """What a lifecycle hook, a sink or a health check is handed: its own settings, and the database.

    Attributes:
        plugin_id: the plugin that is called.
        configuration: its validated settings, an instance of its configuration struct, or None.
        database: the open database.
        logger: the plugin's logger.
    """

    plugin_id: str
    configuration: Any
    database: Database
    logger: logging.Logger


def make_context(plugin_id: str, configuration: Any, database: Database) -> PluginContext:
    """Returns the context of a plugin for a database."""
    return PluginContext(plugin_id, configuration, database, logging.getLogger(f"svc.plugin.{plugin_id}"))


def register_views(database: Database, plugins: Plugins) -> None:
    """Lets the views of the plugins that are enabled in a database follow its commits."""
    enabled = enabled_plugins(database, plugins)
    for item in plugins.registries.views:
        if is_usable(enabled.get(item.plugin_id)):
            database.register_view(item.value)


def is_usable(plugin: EnabledPlugin | None) -> bool:
    """Whether a plugin is enabled and nothing is wrong with it."""
    return plugin is not None and plugin.problem is None


class ActivePlugins:
    """The plugins that one process uses for one database, kept in step with the records in it.

    Args:
        plugins: the outcome of the boot.
        database: the open database, opened in this process.

    ``current`` may be called from any thread or greenlet, for every request: it reads HEAD and compares one
    hash. A change of the records starts and stops plugins in the call that notices it.
    """

    def __init__(self, plugins: Plugins, database: Database) -> None:
        self._plugins = plugins
        self._database = database
        self._lock = threading.RLock()
        self._system_root: Hash | None = None
        self._active: Mapping[str, EnabledPlugin] = MappingProxyType({})
        self._contexts: dict[str, PluginContext] = {}
        self._started: dict[str, EnabledPlugin] = {}
        self._failed: dict[str, EnabledPlugin] = {}
        self._problems: dict[str, PluginProblem] = {}
        self._booted = False

    @property
    def problems(self) -> tuple[PluginProblem, ...]:
        """The plugins that failed to start in this process."""
        return tuple(self._problems.values())

    def start(self) -> Mapping[str, EnabledPlugin]:
        """Starts every enabled plugin, also those that need a restart; returns the active ones."""
        with self._lock:
            self._follow(self._database.head().system_root)
            self._booted = True
            return self._active

    def current(self) -> Mapping[str, EnabledPlugin]:
        """The active plugins by id, as the database has them now."""
        return self.current_at(self._database.head())

    def current_at(self, head: Head) -> Mapping[str, EnabledPlugin]:
        """As ``current``, for one who has just read HEAD."""
        system_root = head.system_root
        if system_root == self._system_root:
            return self._active
        with self._lock:
            if system_root != self._system_root:
                self._follow(system_root)
            return self._active

    def is_active(self, plugin_id: str) -> bool:
        """Whether a plugin is in use for the database now."""
        return plugin_id in self.current()

    def context(self, plugin_id: str) -> PluginContext | None:
        """What a plugin is handed for the database as it is now; None when the plugin is not in use."""
        self.current()
        return self._contexts.get(plugin_id)

    def stop(self) -> None:
        """Stops every plugin that was started, the last one first."""
        with self._lock:
            for plugin in reversed(tuple(self._started.values())):
                self._stop(plugin)
            self._active = MappingProxyType({})
            self._contexts = {}
            self._system_root = None
            self._booted = False

    def _follow(self, system_root: Hash) -> None:
        enabled = {
            plugin_id: plugin
            for plugin_id, plugin in enabled_plugins(self._database, self._plugins).items()
            if plugin.problem is None
        }
        for plugin in tuple(self._started.values()):
            if enabled.get(plugin.id) != plugin:
                self._stop_unless_restart_needed(plugin, enabled.get(plugin.id))
        for plugin in enabled.values():
            if plugin.id not in self._started and self._failed.get(plugin.id) != plugin:
                self._start(plugin)
        self._active = MappingProxyType(
            {plugin_id: self._started[plugin_id] for plugin_id in enabled if plugin_id in self._started}
        )
        self._contexts = {
            plugin_id: make_context(plugin_id, plugin.configuration, self._database)
            for plugin_id, plugin in self._active.items()
        }
        self._system_root = system_root

    def _stop_unless_restart_needed(self, plugin: EnabledPlugin, successor: EnabledPlugin | None) -> None:
        # New settings of a plugin that needs a restart wait for it: the old ones go on meanwhile.
        if successor is not None and self._booted and not self._plugins.descriptors[plugin.id].reload:
            return
        self._stop(plugin)

    def _start(self, plugin: EnabledPlugin) -> None:
        if self._booted and not self._plugins.descriptors[plugin.id].reload:
            return
        try:
            for item in self._plugins.registries.views.of_plugin(plugin.id):
                self._database.register_view(item.value)
            self._plugins.call(
                "svc_start", plugin.id, context=make_context(plugin.id, plugin.configuration, self._database)
            )
        except (Exception, SystemExit) as error:
            text = error.message if isinstance(error, SvcError) else describe_error(error)
            message = f"The plugin {plugin.id!r} failed to start: {text}"
            logger.error("%s", message, exc_info=error)
            self._failed[plugin.id] = plugin
            self._problems[plugin.id] = PluginProblem(plugin.id, ProblemKind.BROKEN, message)
            return
        self._failed.pop(plugin.id, None)
        self._problems.pop(plugin.id, None)
        self._started[plugin.id] = plugin

    def _stop(self, plugin: EnabledPlugin) -> None:
        del self._started[plugin.id]
        try:
            self._plugins.call(
                "svc_stop", plugin.id, context=make_context(plugin.id, plugin.configuration, self._database)
            )
        except (Exception, SystemExit) as error:
            logger.error("The plugin %r failed to stop.", plugin.id, exc_info=error)
