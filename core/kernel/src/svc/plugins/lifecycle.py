"""Which plugins a process uses for a database, and their start and stop.

``ActivePlugins`` follows the records in the system tree, without a restart where the plugin allows it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from svc.errors import PluginError
from svc.findings import Finding, describe_failure
from svc.plugins.context import PluginContext, make_context
from svc.plugins.discovery import ProblemKind
from svc.plugins.enabled import EnabledPlugin, enabled_plugins
from svc.plugins.families import (
    Extension,
    ExtensionSource,
    Family,
    find_extensions,
    require_driver,
)

if TYPE_CHECKING:
    from svc.database import Database, Head, View
    from svc.database.content_checks import PathCheck
    from svc.hashing import Hash
    from svc.paths import Path
    from svc.plugins.contracts import ContentCheck
    from svc.plugins.loading import Plugins
    from svc.plugins.registries import Registries

__all__ = ["ActivePlugins", "register_views"]

logger = logging.getLogger("svc.plugins")

T = TypeVar("T")

_FOLLOW_SECONDS = 5.0
"""How long a request waits for a plugin that another one starts or stops."""


def usable_extensions(
    database: Database, plugins: Plugins, driver_id: str, family: Family[T]
) -> Mapping[str, Extension[T]]:
    """Returns the extensions by plugins that are enabled in a database, for commands, which start none."""
    require_driver(plugins.registries, driver_id, family)
    contexts = {
        plugin.id: make_context(plugin.id, plugin.configuration, database)
        for plugin in enabled_plugins(database, plugins).values()
        if is_usable(plugin)
    }
    return find_extensions(plugins.registries, contexts)[family.name]


def register_views(database: Database, plugins: Plugins) -> None:
    """Lets the views of the plugins that are enabled in a database follow its commits."""
    contexts: dict[str, PluginContext] = {}
    enabled = enabled_plugins(database, plugins)
    source = EnabledExtensions(database, plugins)
    for item in plugins.registries.views:
        plugin = enabled.get(item.plugin_id)
        if plugin is not None and is_usable(plugin):
            context = contexts.get(plugin.id)
            if context is None:
                context = make_context(plugin.id, plugin.configuration, database, source)
                contexts[plugin.id] = context
            database.register_view(bound_view(item.value, context))


def bound_view(view: View, context: PluginContext) -> View:
    """Returns a view as it is for one database; PluginError if ``bind`` gave another."""
    from svc.database import View

    bound: object = view.bind(context)
    if isinstance(bound, View) and (bound.name, bound.format) == (view.name, view.format):
        return bound
    raise PluginError(
        f"What the view {view.name!r} gives for a database is not that view.", plugin=context.plugin_id
    )


class EnabledExtensions(ExtensionSource):
    """Knows the extensions of the plugins that are enabled in a database, for who starts none of them."""

    def __init__(self, database: Database, plugins: Plugins) -> None:
        self._database = database
        self._plugins = plugins
        self._known: dict[str, Mapping[str, Extension[Any]]] = {}

    def extensions_of(self, driver_id: str, family: Family[T]) -> Mapping[str, Extension[T]]:
        found = self._known.get(family.name)
        if found is None:
            found = usable_extensions(self._database, self._plugins, driver_id, family)
            self._known[family.name] = found
        require_driver(self._plugins.registries, driver_id, family)
        return found

    def is_broken(self, plugin_id: str) -> bool:
        return cannot_be_used(enabled_plugins(self._database, self._plugins).get(plugin_id))


def path_checks(registries: Registries, contexts: Mapping[str, PluginContext]) -> list[PathCheck]:
    """Returns the content checks of plugins that have a context, as a database takes them."""
    from svc.database.content_checks import PathCheck

    return [
        PathCheck(suffix, item.value.maximum_size, _check_in(item.value, contexts[item.plugin_id]))
        for item in registries.content_checks
        if item.plugin_id in contexts
        for suffix in item.value.suffixes
    ]


def _check_in(check: ContentCheck, context: PluginContext) -> Callable[[Path, bytes], None]:
    return lambda path, content: check.check(path, content, context)


def cannot_be_used(plugin: EnabledPlugin | None) -> bool:
    """Whether something is wrong with an enabled plugin, other than that this process may not use it."""
    problem = None if plugin is None else plugin.problem
    return problem is not None and problem.kind is not ProblemKind.NOT_ALLOWED


def is_usable(plugin: EnabledPlugin | None) -> TypeGuard[EnabledPlugin]:
    """Whether a plugin is enabled and nothing is wrong with it."""
    return plugin is not None and plugin.problem is None


def failing_view(plugin_id: str, name: str, error: str, since_ms: int | None) -> Finding:
    """The finding for a view that fails."""
    return Finding(
        "view.failing",
        plugin_id,
        f"A view of the plugin {plugin_id!r} fails.",
        "What needs the view fails too, until it works again; it is tried again by itself.",
        since_ms=since_ms,
        subject=name,
        detail=f"{name}: {error}",
    )


def renewed_view(plugin_id: str, name: str, reason: str, since_ms: int) -> Finding:
    """The finding for a view whose data were damaged."""
    return Finding(
        "view.renewed",
        plugin_id,
        f"Data of a view of the plugin {plugin_id!r} were damaged, and are made anew.",
        "Look after the disk. Nothing else need be done: this is told for an hour.",
        since_ms=since_ms,
        subject=name,
        detail=f"{name}: {reason}",
    )


class ActivePlugins:
    """The plugins that one process uses for one open database, kept in step with the records in it.

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
        self._extensions: Mapping[str, Mapping[str, Extension[Any]]] = {}
        self._started: dict[str, EnabledPlugin] = {}
        self._failed: dict[str, EnabledPlugin] = {}
        self._findings: dict[str, Finding] = {}
        self._booted = False
        self._is_late = False

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the plugins in this process: which failed to start or stop, and which views."""
        found = list(self._findings.values())
        for plugin_id in tuple(self._started):
            for item in self._plugins.registries.views.of_plugin(plugin_id):
                failure = None
                with contextlib.suppress(Exception):  # what reads it tells
                    failure = self._database.view(item.name).failure()
                if failure is not None:
                    found.append(failing_view(plugin_id, item.name, failure.reason, failure.since_ms))
                damage = self._database.view(item.name).damage()
                if damage is not None:
                    found.append(renewed_view(plugin_id, item.name, damage.reason, damage.at_ms))
        return tuple(found)

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
        # A plugin that does not start or stop keeps the lock: what was in use stays so then, and goes on.
        if not self._lock.acquire(timeout=0.0 if self._is_late else _FOLLOW_SECONDS):
            self._is_late = True
            return self._active
        try:
            if system_root != self._system_root:
                self._follow(system_root)
            self._is_late = False
            return self._active
        finally:
            self._lock.release()

    def is_active(self, plugin_id: str) -> bool:
        """Whether a plugin is in use for the database now."""
        return plugin_id in self.current()

    def context(self, plugin_id: str) -> PluginContext | None:
        """What a plugin is handed for the database as it is now; None when the plugin is not in use."""
        self.current()
        return self._contexts.get(plugin_id)

    def extensions_of(self, driver_id: str, family: Family[T]) -> Mapping[str, Extension[T]]:
        """See ``PluginContext.extensions``."""
        require_driver(self._plugins.registries, driver_id, family)
        return self._extensions.get(family.name, _NOTHING)

    def is_current(self, plugin_id: str, configuration: Any) -> bool:
        """See ``PluginContext.is_current``; settings that wait for a restart do not count."""
        if self._booted and not self._plugins.descriptors[plugin_id].reload:
            return True
        plugin = enabled_plugins(self._database, self._plugins).get(plugin_id)
        return is_usable(plugin) and plugin.configuration == configuration

    def is_broken(self, plugin_id: str) -> bool:
        """See ``PluginContext.is_broken``; one that failed to start is."""
        plugin = enabled_plugins(self._database, self._plugins).get(plugin_id)
        return cannot_be_used(plugin) or (plugin is not None and plugin_id in self._failed)

    def stop(self) -> None:
        """Stops every plugin that was started, the last one first."""
        with self._lock:
            for plugin in reversed(tuple(self._started.values())):
                self._stop(plugin)
            self._active = MappingProxyType({})
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
        for plugin_id in self._extending_first(enabled):
            if plugin_id not in self._started and self._failed.get(plugin_id) != enabled[plugin_id]:
                self._start(enabled[plugin_id])
        for plugin_id in [name for name in self._failed if name not in enabled]:
            # It is tried no more, so that it did not start is wrong no more.
            del self._failed[plugin_id], self._findings[plugin_id]
        self._active = MappingProxyType(
            {plugin_id: self._started[plugin_id] for plugin_id in enabled if plugin_id in self._started}
        )
        self._system_root = system_root

    def _extending_first(self, enabled: Mapping[str, EnabledPlugin]) -> list[str]:
        """The plugins in an order where each comes after those that extend it, as far as possible."""
        extending: dict[str, list[str]] = {}
        for plugin_id in enabled:
            for driver in sorted(self._plugins.descriptors[plugin_id].drivers):
                extending.setdefault(driver, []).append(plugin_id)
        order: dict[str, None] = {}
        seen: set[str] = set()

        def visit(plugin_id: str) -> None:
            if plugin_id not in seen:
                seen.add(plugin_id)
                for other in extending.get(plugin_id, ()):
                    visit(other)
                order[plugin_id] = None

        for plugin_id in enabled:
            visit(plugin_id)
        return list(order)

    def _stop_unless_restart_needed(self, plugin: EnabledPlugin, successor: EnabledPlugin | None) -> None:
        # New settings of a plugin that needs a restart wait for it: the old ones go on meanwhile.
        if successor is not None and self._booted and not self._plugins.descriptors[plugin.id].reload:
            return
        self._stop(plugin)

    def _start(self, plugin: EnabledPlugin) -> None:
        if self._booted and not self._plugins.descriptors[plugin.id].reload:
            return
        context = make_context(plugin.id, plugin.configuration, self._database, self)
        self._use({**self._contexts, plugin.id: context})
        try:
            for item in self._plugins.registries.views.of_plugin(plugin.id):
                view = bound_view(item.value, context)
                self._database.register_view(view, replace=view is not item.value)
            self._plugins.call("svc_start", plugin.id, context=context)
        except (Exception, SystemExit) as error:
            logger.error("The plugin %r failed to start.", plugin.id, exc_info=error)
            self._failed[plugin.id] = plugin
            self._use(self._contexts_without(plugin.id))
            self._note(plugin, "start", error)
            return
        self._failed.pop(plugin.id, None)
        self._findings.pop(plugin.id, None)
        self._started[plugin.id] = plugin

    def _stop(self, plugin: EnabledPlugin) -> None:
        context = self._contexts[plugin.id]
        del self._started[plugin.id]
        self._use(self._contexts_without(plugin.id))
        try:
            self._plugins.call("svc_stop", plugin.id, context=context)
        except (Exception, SystemExit) as error:
            logger.error("The plugin %r failed to stop.", plugin.id, exc_info=error)
            self._note(plugin, "stop", error)

    def _contexts_without(self, plugin_id: str) -> dict[str, PluginContext]:
        return {name: context for name, context in self._contexts.items() if name != plugin_id}

    def _use(self, contexts: dict[str, PluginContext]) -> None:
        """Sets the contexts of the plugins in use; families that stay the same are kept."""
        found = find_extensions(self._plugins.registries, contexts)
        for family, extensions in found.items():
            known = self._extensions.get(family)
            if known is not None and _contexts_of(known) == _contexts_of(extensions):
                found[family] = known
        self._extensions = found
        self._contexts = contexts
        self._database.use_content_checks(path_checks(self._plugins.registries, contexts))

    def _note(self, plugin: EnabledPlugin, verb: str, error: BaseException) -> None:
        self._findings[plugin.id] = Finding(
            f"plugin.{verb}-failed",
            plugin.id,
            f"The plugin {plugin.id!r} failed to {verb}.",
            "It is out of use in this process; it is tried again with new settings, and by a new start."
            if verb == "start"
            else "What it has left behind goes with the process: start the server anew.",
            since_ms=time.time_ns() // 1_000_000,
            detail=describe_failure(error),
        )


def _contexts_of(extensions: Mapping[str, Extension[Any]]) -> dict[str, int]:
    return {name: id(extension.context) for name, extension in extensions.items()}


_NOTHING: Mapping[str, Any] = MappingProxyType({})
