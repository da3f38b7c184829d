"""Which plugins are installed: what the entry points of all distributions say, without importing any."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from svc.findings import describe_error
from svc.plugins.descriptor import ENTRY_POINT_GROUP, PLUGIN_SET_GROUP

__all__ = [
    "InstalledPlugin",
    "PluginProblem",
    "ProblemKind",
    "find_entry_points",
    "find_installed",
    "find_plugin_set",
    "forget_installed",
    "parse_allowed",
]

PLUGIN_SET_PREFIX = "set:"
"""A problem with a plugin set is reported under this and the name of the set."""

DISTRIBUTION_PREFIX = "distribution:"
"""A problem with a whole distribution is reported under this and the name of its directory."""


class ProblemKind(Enum):
    """What can be wrong with a plugin."""

    BROKEN = "broken"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    TOO_NEW = "too-new"
    TOO_OLD = "too-old"
    UNKNOWN_HOOK = "unknown-hook"
    CONFIGURATION = "configuration"
    NOT_ALLOWED = "not-allowed"
    NEEDS = "needs"


class PluginProblem(Struct, frozen=True):
    """Something wrong with one plugin, ``set:<name>`` or ``distribution:<name>``; it is out of use.

    ``message`` has no secret.
    """

    plugin_id: str
    kind: ProblemKind
    message: str


class InstalledPlugin(Struct, frozen=True):
    """A plugin as its distribution declares it. None of its code has been imported.

    ``value`` is where the descriptor is, ``module:attribute``; ``distribution`` is empty if it has no name.
    """

    id: str
    value: str
    distribution: str
    version: str
    summary: str
    entry_point: importlib.metadata.EntryPoint


_Places = tuple[tuple[str, tuple[int, ...]], ...]


class _Reading(Struct, frozen=True):
    places: _Places
    plugins: tuple[Mapping[str, InstalledPlugin], tuple[PluginProblem, ...]]
    entry_points: Any


_last: _Reading | None = None
"""Forked processes inherit it. Reading was an eighth of a worker's start, half of a background process's."""


def _read() -> _Reading:
    global _last
    last, places = _last, _places()
    if last is None or last.places != places:
        found, broken = _declared()
        plugins, problems = _plugins_of(found.select(group=ENTRY_POINT_GROUP))
        last = _last = _Reading(places, (plugins, (*problems, *broken)), found)
    return last


def _declared() -> tuple[Any, tuple[PluginProblem, ...]]:
    """Returns all entry points, and which distributions have some that can't be read."""
    try:
        return importlib.metadata.entry_points(), ()
    except Exception:  # noqa: BLE001 - whatever is wrong with one, the others are there
        return _declared_one_by_one()


def _declared_one_by_one() -> tuple[Any, tuple[PluginProblem, ...]]:
    points: list[importlib.metadata.EntryPoint] = []
    problems: list[PluginProblem] = []
    seen: set[str] = set()
    for distribution in importlib.metadata.distributions():
        place = str(getattr(distribution, "_path", "a distribution"))
        try:
            name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or place).lower()
            if name not in seen:
                points += distribution.entry_points
        except Exception as error:  # noqa: BLE001 - it is somebody else's
            problems.append(
                PluginProblem(
                    DISTRIBUTION_PREFIX + os.path.basename(place),
                    ProblemKind.BROKEN,
                    f"What {place} declares cannot be read: {describe_error(error)}.",
                )
            )
        else:
            seen.add(name)
    return importlib.metadata.EntryPoints(points), tuple(problems)


def forget_installed() -> None:
    """Lets the next question be answered by another reading, whatever directories say of their changes."""
    global _last
    _last = None


def _places() -> _Places:
    """Where distributions are looked for, and when something was last put there or taken away."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for place in sys.path:
        try:
            seen = os.stat(place or ".")
        except OSError:
            found.append((place, ()))
        else:
            found.append((place, (seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)))
    return tuple(found)


def parse_allowed(text: str | None) -> tuple[str, ...] | None:
    """Reads plugin ids, with commas or spaces between them, as ``--plugins`` and ``SVC_PLUGINS`` give them.

    None means that nothing was said, and all installed plugins are allowed; an empty text that none is.
    """
    if text is None:
        return None
    return tuple(dict.fromkeys(text.replace(",", " ").split()))


def find_installed() -> tuple[Mapping[str, InstalledPlugin], tuple[PluginProblem, ...]]:
    """Returns the installed plugins by id, and the ids that several distributions claim.

    A claimed id is nobody's: choosing one by the order of directories would let a distribution slip in the
    place of another. Reads the metadata of all distributions from disk (milliseconds), unless it has read
    them and nothing was installed or removed since.
    """
    return _read().plugins


def _plugins_of(
    entry_points: importlib.metadata.EntryPoints,
) -> tuple[Mapping[str, InstalledPlugin], tuple[PluginProblem, ...]]:
    claims: dict[str, dict[str, InstalledPlugin]] = {}
    unreadable = []
    for entry_point in entry_points:
        try:
            plugin = _installed(entry_point)
        except Exception as error:  # noqa: BLE001 - metadata of others
            message = (
                f"The metadata of the plugin {entry_point.name!r} cannot be read: {describe_error(error)}."
            )
            unreadable.append(PluginProblem(entry_point.name, ProblemKind.BROKEN, message))
            continue
        claims.setdefault(plugin.id, {}).setdefault(f"{plugin.distribution} {plugin.value}", plugin)
    found = {name: next(iter(claim.values())) for name, claim in sorted(claims.items()) if len(claim) == 1}
    problems = tuple(
        PluginProblem(
            name,
            ProblemKind.DUPLICATE,
            f"The plugin id {name!r} is claimed by several distributions: {_listed(claim)}. "
            "None of them is used; uninstall all but one.",
        )
        for name, claim in sorted(claims.items())
        if len(claim) > 1
    )
    return MappingProxyType(found), (*problems, *unreadable)


def find_entry_points(group: str, name: str) -> importlib.metadata.EntryPoints:
    """Returns the entry points of a group with a name, of all distributions that can be read."""
    found: importlib.metadata.EntryPoints = _read().entry_points.select(group=group, name=name)
    return found


def find_plugin_set(name: str = "default") -> tuple[tuple[str, ...], tuple[PluginProblem, ...]]:
    """Returns the plugin ids of a plugin set, and what is wrong with it; empty when there is none.

    Imports the module of the set, which holds nothing but the tuple.
    """
    entry_points = {
        _distribution_name(entry_point): entry_point
        for entry_point in find_entry_points(PLUGIN_SET_GROUP, name)
    }
    if not entry_points:
        return (), ()
    identifier = PLUGIN_SET_PREFIX + name
    if len(entry_points) > 1:
        message = (
            f"The plugin set {name!r} comes from several distributions: {', '.join(sorted(entry_points))}. "
            "None of them is used; uninstall all but one."
        )
        return (), (PluginProblem(identifier, ProblemKind.DUPLICATE, message),)
    distribution, entry_point = next(iter(entry_points.items()))
    try:
        plugins = entry_point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever foreign code raises, it is reported
        message = f"The plugin set {name!r} of {distribution} cannot be imported: {describe_error(error)}."
        return (), (PluginProblem(identifier, ProblemKind.BROKEN, message),)
    if not isinstance(plugins, tuple) or not all(isinstance(item, str) for item in plugins):
        message = f"The plugin set {name!r} of {distribution} is not a tuple of plugin ids."
        return (), (PluginProblem(identifier, ProblemKind.BROKEN, message),)
    return tuple(dict.fromkeys(plugins)), ()


def _installed(entry_point: importlib.metadata.EntryPoint) -> InstalledPlugin:
    distribution = entry_point.dist
    metadata = None if distribution is None else distribution.metadata
    return InstalledPlugin(
        id=entry_point.name,
        value=entry_point.value,
        distribution=_distribution_name(entry_point),
        version=_field(metadata, "Version"),
        summary=_field(metadata, "Summary"),
        entry_point=entry_point,
    )


def _distribution_name(entry_point: importlib.metadata.EntryPoint) -> str:
    """Returns the name of its distribution; an empty text where that has none, or none that can be read."""
    try:
        return _field(None if entry_point.dist is None else entry_point.dist.metadata, "Name")
    except Exception:  # noqa: BLE001 - metadata of others
        return ""


def _field(metadata: importlib.metadata.PackageMetadata | None, name: str) -> str:
    if metadata is None or name not in metadata:
        return ""
    return str(metadata[name])


def _listed(claim: Mapping[str, InstalledPlugin]) -> str:
    return ", ".join(
        sorted(
            f"{plugin.distribution or 'a distribution without a name'} {plugin.version}".strip()
            for plugin in claim.values()
        )
    )
