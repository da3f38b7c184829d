"""What people are told about plugins: the listing, the findings of the doctor, options of a deployment."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.version import InvalidVersion, Version

from svc.errors import PluginError, UsageError
from svc.findings import Finding
from svc.plugins.configuration import checked_assignment, hide_all, merge_settings, settings_as_shown
from svc.plugins.discovery import PluginProblem, ProblemKind
from svc.plugins.enabled import EnabledPlugin, enabled_plugins, refused_plugins, unreadable_plugins
from svc.redaction import redact_text

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins.descriptor import PluginDescriptor
    from svc.plugins.loading import Plugins

__all__ = ["PluginReport", "describe_plugins", "diagnose", "parse_options", "plugin_findings"]

_PLAIN_NAME = re.compile(r"[a-z][a-z-]*(\.[\w-]+)+", re.ASCII)

_SAID: dict[ProblemKind, tuple[str, str]] = {
    ProblemKind.BROKEN: (
        "The plugin {id!r} is broken, and out of use.",
        "Mend it, install another version, or leave it out of the allowed ones; then start the server anew.",
    ),
    ProblemKind.MISSING: (
        "The plugin {id!r} is needed, and not installed.",
        "Install it; or disable it in the database and leave it out of the plugins that are allowed.",
    ),
    ProblemKind.DUPLICATE: (
        "The plugin {id!r} claims what is another's, and is out of use.",
        "Uninstall one of the two.",
    ),
    ProblemKind.TOO_NEW: ("The plugin {id!r} needs a newer svc, and is out of use.", "Upgrade svc."),
    ProblemKind.TOO_OLD: ("The plugin {id!r} is too old.", "Upgrade it."),
    ProblemKind.UNKNOWN_HOOK: (
        "The plugin {id!r} implements a hook that does not exist, and is out of use.",
        "Mend it, or install a version that fits this svc.",
    ),
    ProblemKind.CONFIGURATION: (
        "The settings of the plugin {id!r} are not valid, and it is out of use.",
        "'svc plugins config {id}' shows and changes them.",
    ),
    ProblemKind.NOT_ALLOWED: (
        "The plugin {id!r} is enabled in this database, and not allowed here.",
        "Name it in --plugins or SVC_PLUGINS, or disable it with 'svc plugins disable {id}'.",
    ),
    ProblemKind.NEEDS: (
        "The plugin {id!r} needs another one that is not in use here, and is out of use.",
        "Install, allow and enable the one that it needs, or disable it with 'svc plugins disable {id}'.",
    ),
}
"""What is said of a problem, and what to do about it. The problem's own text may repeat a plugin's."""


class PluginReport(msgspec.Struct, frozen=True, omit_defaults=False):
    """One plugin as the command line and ``GET /system/plugins`` show it.

    Attributes:
        version: of the plugin in use, else of its distribution, else of the database's record.
        enabled: whether the database uses it; None when no database was looked at.
        problem_kind: the kind of its problem, or the code of the finding, or None.
        rests: what it extends and cannot, as ``driver:family``: that driver is not in use here.
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
    drives: list[str]
    rests: list[str]
    configuration: dict[str, Any] | None


def describe_plugins(
    plugins: Plugins, database: Database | None = None, findings: Iterable[Finding] = ()
) -> list[PluginReport]:
    """Returns a report on every plugin that is installed, allowed, enabled or has a problem, by id.

    A finding is a plugin's problem where the boot and the database show none.
    """
    enabled = {} if database is None else enabled_plugins(database, plugins)
    identifiers = {
        *plugins.installed,
        *plugins.descriptors,
        *(plugins.allowed or ()),
        *(problem.plugin_id for problem in plugins.problems),
        *enabled,
    }
    wrong: dict[str, Finding] = {}
    for finding in findings:
        wrong.setdefault(finding.source, finding)
    used = {
        plugin_id
        for plugin_id in plugins.descriptors
        if database is None or (plugin_id in enabled and enabled[plugin_id].problem is None)
    }
    return [
        _report(plugins, plugin_id, enabled if database is not None else None, wrong.get(plugin_id), used)
        for plugin_id in sorted(identifiers)
    ]


def diagnose(plugins: Plugins, database: Database | None = None) -> list[PluginProblem]:
    """Returns everything that is wrong with the plugins of this process and, if given, of a database.

    Also plugins older than the database was last configured with: they may not understand its settings.
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


def plugin_findings(plugins: Plugins, database: Database | None = None) -> list[Finding]:
    """Returns what is wrong with the plugins of this process and, if given, of a database, as findings.

    An allowed and broken plugin is among them whether or not the database has it enabled. Of one that is not
    allowed nothing is known; it is among them where the database has it enabled.
    """
    found = [_as_finding(problem) for problem in diagnose(plugins, database)]
    if database is None:
        return found
    for plugin_id in refused_plugins(database):
        if plugin_id in plugins.descriptors:
            message = f"The plugin {plugin_id!r} could not be enabled when this database was made."
            advice = (
                f"'svc plugins enable {plugin_id}' says why, or enables it; "
                f"'svc plugins disable {plugin_id}' gives it up."
            )
            found.append(Finding("plugin.not-enabled", plugin_id, message, advice))
    for plugin_id in unreadable_plugins(database):
        message = f"The record of the plugin {plugin_id!r} in this database can't be read."
        advice = (
            f"'svc plugins enable {plugin_id}' writes another, 'svc plugins disable {plugin_id}' removes it."
        )
        found.append(Finding("plugin.record", plugin_id, message, advice))
    return found


def _as_finding(problem: PluginProblem) -> Finding:
    message, advice = (text.format(id=problem.plugin_id) for text in _SAID[problem.kind])
    detail = redact_text(problem.message)
    return Finding(f"plugin.{problem.kind.value}", problem.plugin_id, message, advice, detail=detail)


def parse_options(
    plugins: Plugins,
    texts: Iterable[str],
    given: Iterable[tuple[str, Mapping[str, Any]]] = (),
    place: str = "--plugin-option",
) -> Plugins:
    """Returns the boot's outcome with settings of this deployment laid over those of any database.

    ``given`` come before ``texts``; ``place`` is where the texts were found, and begins a message. None shows
    a value. UsageError: a text names no plugin in use; PluginError: no setting, or none that takes the value.
    """
    overrides = {plugin_id: dict(settings) for plugin_id, settings in plugins.overrides.items()}
    for text in texts:
        name, separator, value = text.partition("=")
        plugin_id = _longest_id(plugins, name) if separator else None
        if plugin_id is None:
            raise UsageError(f"{place}: {_malformed(name if separator else '')}", field="plugin-option")
        setting = name[len(plugin_id) + 1 :]
        try:
            settings = checked_assignment(plugins.descriptors[plugin_id], setting, value)
        except PluginError as error:
            if _PLAIN_NAME.fullmatch(name) is None:
                raise PluginError(f"{place}: {_malformed(name)}", plugin=plugin_id) from None
            raise PluginError(f"{place}: {error.message}", **error.details) from None
        overrides[plugin_id] = merge_settings(overrides.get(plugin_id, {}), settings)
    for plugin_id, values in given:
        overrides[plugin_id] = merge_settings(overrides.get(plugin_id, {}), values)
    return with_overrides(plugins, overrides)


def _malformed(name: str) -> str:
    """What is said of an option without a plugin or setting; any text but a plain name may hold a value."""
    shown = f"{name!r}" if _PLAIN_NAME.fullmatch(name) else "one of them"
    return f"{shown} is not 'id.key=value' with the id of a plugin in use and one of its settings."


def with_overrides(plugins: Plugins, overrides: Mapping[str, Mapping[str, Any]]) -> Plugins:
    """Returns the boot's outcome with other settings of the deployment, and a cache of its own."""
    return dataclasses.replace(
        plugins, overrides=MappingProxyType(dict(overrides)), enabled_cache=type(plugins.enabled_cache)()
    )


def shown_settings(plugins: Plugins, plugin: EnabledPlugin) -> dict[str, Any]:
    """The settings of an enabled plugin for output, all values hidden where no struct tells the secrets."""
    if plugin.problem is not None or plugin.id not in plugins.descriptors:
        return hide_all(plugin.settings)
    return settings_as_shown(plugin.configuration)


def _report(
    plugins: Plugins,
    plugin_id: str,
    enabled_ones: Mapping[str, EnabledPlugin] | None,
    wrong: Finding | None,
    used: Collection[str],
) -> PluginReport:
    enabled = None if enabled_ones is None else enabled_ones.get(plugin_id)
    installed = plugins.installed.get(plugin_id)
    descriptor = plugins.read.get(plugin_id)
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
        enabled=None if enabled_ones is None else enabled is not None,
        problem=problem.message if problem is not None else wrong.text if wrong is not None else None,
        problem_kind=problem.kind.value if problem is not None else wrong.code if wrong is not None else None,
        adds=_additions(plugins, plugin_id),
        drives=[name for name, item in plugins.registries.driven.items() if item.driver == plugin_id],
        rests=_resting(descriptor, used),
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


def _resting(descriptor: PluginDescriptor | None, used: Collection[str]) -> list[str]:
    extended = () if descriptor is None else descriptor.extends
    return [item for item in extended if item.partition(":")[0] not in used]


def _longest_id(plugins: Plugins, name: str) -> str | None:
    fitting = [plugin_id for plugin_id in plugins.descriptors if name.startswith(plugin_id + ".")]
    return max(fitting, key=len, default=None)


def _is_older(version: str, other: str) -> bool:
    try:
        return Version(version) < Version(other)
    except InvalidVersion:
        return False
