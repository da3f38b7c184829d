"""What people are told about plugins: the listing, the findings of the doctor, options of a deployment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.version import InvalidVersion, Version

from svc.errors import UsageError
from svc.plugins.configuration import (
    hide_all,
    merge_settings,
    parse_assignments,
    settings_as_shown,
    validate_settings,
)
from svc.plugins.discovery import PluginProblem, ProblemKind
from svc.plugins.enabling import EnabledPlugin, enabled_plugins

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins.loading import Plugins

__all__ = ["PluginReport", "describe_plugins", "diagnose", "parse_options"]


class PluginReport(msgspec.Struct, frozen=True, omit_defaults=False):
    """One plugin as the command line and ``GET /system/plugins`` show it.

    Attributes:
        id: the plugin.
        version: of the plugin in use, else of its distribution, else of the database's record.
        summary: one line, or an empty text.
        distribution: name of its distribution, or None when it is not installed.
        installed: whether a distribution has it.
        allowed: whether the deployment lets it run.
        enabled: whether the database uses it; None when no database was looked at.
        problem: what is wrong with it here, or None.
        problem_kind: the kind of that problem, or None.
        adds: names of what it has registered, by family.
        configuration: its settings with secrets hidden; None when it is not enabled.
    """

    id: str
    version: str
    summary: str
    distribution: str | None
    installed: bool
    allowed: bool
    enabled: bool | None
    problem: str | None
    problem_kind: str | None
    adds: dict[str, list[str]]
    configuration: dict[str, Any] | None


def describe_plugins(plugins: Plugins, database: Database | None = None) -> list[PluginReport]:
    """Returns a report on every plugin that is installed, allowed, enabled or has a problem, by id.

    Args:
        plugins: the outcome of the boot.
        database: the database to look at, if any.
    """
    enabled = {} if database is None else enabled_plugins(database, plugins)
    identifiers = {
        *plugins.installed,
        *plugins.descriptors,
        *(plugins.allowed or ()),
        *(problem.plugin_id for problem in plugins.problems),
        *enabled,
    }
    return [
        _report(plugins, plugin_id, enabled.get(plugin_id), known=database is not None)
        for plugin_id in sorted(identifiers)
    ]


def diagnose(plugins: Plugins, database: Database | None = None) -> list[PluginProblem]:
    """Returns everything that is wrong with the plugins of this process and, if given, of a database.

    A database that needs a missing plugin is told which one. Plugins whose version is older than the one that
    the database was last configured with are named too: they may not understand its settings.
    """
    found = list(plugins.problems)
    if database is None:
        return found
    for plugin in enabled_plugins(database, plugins).values():
        if plugin.problem is not None:
            if plugin.problem not in found:
                found.append(plugin.problem)
            continue
        descriptor = plugins.descriptors[plugin.id]
        if _is_older(descriptor.version, plugin.version):
            message = (
                f"The plugin {plugin.id!r} {descriptor.version} is older than {plugin.version}, "
                "with which this database was last configured."
            )
            found.append(PluginProblem(plugin.id, ProblemKind.TOO_OLD, message))
    return found


def parse_options(plugins: Plugins, texts: Iterable[str]) -> Plugins:
    """Returns the boot's outcome with settings of this deployment laid over those of any database.

    Args:
        plugins: the outcome of the boot.
        texts: as ``--plugin-option`` gives them: ``id.key=value``.

    Raises:
        UsageError: a text is not of that form, or names no plugin in use.
        PluginError: a key is not a setting of its plugin, or a value is not valid.
    """
    overrides = {plugin_id: dict(settings) for plugin_id, settings in plugins.overrides.items()}
    for text in texts:
        name, separator, value = text.partition("=")
        plugin_id = _longest_id(plugins, name)
        if not separator or plugin_id is None:
            raise UsageError(
                f"The plugin option {name!r} is not 'id.key=value' with the id of a plugin in use.",
                field="plugin-option",
            )
        descriptor = plugins.descriptors[plugin_id]
        settings = parse_assignments(descriptor, [(name[len(plugin_id) + 1 :], value)])
        overrides[plugin_id] = merge_settings(overrides.get(plugin_id, {}), settings)
    return with_overrides(plugins, overrides)


def with_overrides(plugins: Plugins, overrides: Mapping[str, Mapping[str, Any]]) -> Plugins:
    """Returns the boot's outcome with other settings of the deployment, and a cache of its own."""
    return dataclasses.replace(
        plugins, overrides=MappingProxyType(dict(overrides)), enabled_cache=type(plugins.enabled_cache)()
    )


def shown_settings(plugins: Plugins, plugin: EnabledPlugin) -> dict[str, Any]:
    """The settings of an enabled plugin for output.

    Without the plugin's struct nothing tells which of them are secret, and all values are hidden.
    """
    if plugin.problem is not None or plugin.id not in plugins.descriptors:
        return hide_all(plugin.settings)
    return settings_as_shown(plugin.configuration)


def default_settings(plugins: Plugins, plugin_id: str) -> dict[str, Any] | None:
    """The default settings of a plugin in use; None when it has none, or some setting has no default."""
    descriptor = plugins.descriptors.get(plugin_id)
    if descriptor is None or descriptor.configuration is None:
        return None
    required = any(item.required for item in msgspec.structs.fields(descriptor.configuration))
    return None if required else settings_as_shown(validate_settings(descriptor, {}))


def _report(plugins: Plugins, plugin_id: str, enabled: EnabledPlugin | None, *, known: bool) -> PluginReport:
    installed = plugins.installed.get(plugin_id)
    descriptor = plugins.descriptors.get(plugin_id)
    problem = plugins.problem(plugin_id) or (enabled.problem if enabled is not None else None)
    version = (
        descriptor.version
        if descriptor is not None
        else installed.version
        if installed is not None
        else enabled.version
        if enabled is not None
        else ""
    )
    summary = (
        descriptor.summary if descriptor is not None else installed.summary if installed is not None else ""
    )
    return PluginReport(
        id=plugin_id,
        version=version,
        summary=summary,
        distribution=installed.distribution if installed is not None else None,
        installed=installed is not None,
        allowed=plugins.is_allowed(plugin_id),
        enabled=(enabled is not None) if known else None,
        problem=problem.message if problem is not None else None,
        problem_kind=problem.kind.value if problem is not None else None,
        adds=_additions(plugins, plugin_id),
        configuration=shown_settings(plugins, enabled) if enabled is not None else None,
    )


def _additions(plugins: Plugins, plugin_id: str) -> dict[str, list[str]]:
    additions: dict[str, list[str]] = {}
    for family, registry in plugins.registries.named().items():
        names = [
            item.value.template if family == "routes" else item.name for item in registry.of_plugin(plugin_id)
        ]
        if names:
            additions[family] = names
    return additions


def _longest_id(plugins: Plugins, name: str) -> str | None:
    fitting = [plugin_id for plugin_id in plugins.descriptors if name.startswith(plugin_id + ".")]
    return max(fitting, key=len, default=None)


def _is_older(version: str, other: str) -> bool:
    try:
        return Version(version) < Version(other)
    except InvalidVersion:
        return False
