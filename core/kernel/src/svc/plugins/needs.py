"""Which plugins need which others, and in what order they are therefore enabled and started."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from svc.errors import PluginError
from svc.plugins.discovery import PluginProblem, ProblemKind

if TYPE_CHECKING:
    from svc.plugins.descriptor import PluginDescriptor
    from svc.plugins.enabled import EnabledPlugin
    from svc.plugins.loading import Plugins

__all__ = ["all_needed", "in_order_of_needs", "needs_of", "require_needs", "with_needs"]


def needs_of(plugins: Plugins, plugin_id: str) -> tuple[str, ...]:
    """The ids of the plugins that a plugin in use needs; none of one that is not in use."""
    descriptor = plugins.descriptors.get(plugin_id)
    return () if descriptor is None else descriptor.needs


def all_needed(plugin_ids: Iterable[str], descriptors: Mapping[str, PluginDescriptor]) -> list[str]:
    """The ids and those of all plugins that they need, each behind those that it needs itself."""
    seen: set[str] = set()
    order: list[str] = []

    def visit(plugin_id: str) -> None:
        if plugin_id in seen:
            return
        seen.add(plugin_id)
        for other in descriptors[plugin_id].needs if plugin_id in descriptors else ():
            visit(other)
        order.append(plugin_id)

    for plugin_id in plugin_ids:
        visit(plugin_id)
    return order


def in_order_of_needs(plugin_ids: Iterable[str], plugins: Plugins) -> list[str]:
    """The ids, each behind those that it needs; those that need each other stand as they were."""
    remaining = list(dict.fromkeys(plugin_ids))
    ordered: list[str] = []
    while remaining:
        ready = [name for name in remaining if not any(need in remaining for need in needs_of(plugins, name))]
        ordered.extend(ready or remaining)
        remaining = [name for name in remaining if ready and name not in ready]
    return ordered


def require_needs(plugins: Plugins, plugin_id: str, enabled: Collection[str]) -> None:
    """Raises PluginError, which says what to do, when a plugin needs one that is not enabled."""
    missing = [name for name in needs_of(plugins, plugin_id) if name not in enabled]
    if missing:
        raise PluginError(
            f"The plugin {plugin_id!r} needs the plugin {missing[0]!r}, which is not enabled in this "
            f"database: 'svc plugins enable {missing[0]}' enables it.",
            plugin=plugin_id,
        )


def with_needs(enabled: Mapping[str, EnabledPlugin], plugins: Plugins) -> dict[str, EnabledPlugin]:
    """The same, each behind those that it needs, and with a problem where one of them can't be used."""
    found: dict[str, EnabledPlugin] = {}
    for name in in_order_of_needs(enabled, plugins):
        plugin = enabled[name]
        missing = [
            need for need in needs_of(plugins, name) if need not in found or found[need].problem is not None
        ]
        if plugin.problem is None and missing:
            message = f"The plugin {name!r} needs the plugin {missing[0]!r}, which this database cannot use."
            plugin = replace(plugin, problem=PluginProblem(name, ProblemKind.NEEDS, message))
        found[name] = plugin
    return found
