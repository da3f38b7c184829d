"""The third level: which plugins a database uses, and with which settings.

Each enabled plugin has a record in the system tree at ``("plugins", id)``: JSON with id, enabled version and
settings. So workers, replicas and backups agree, and restoring an old snapshot changes none of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from svc.errors import CorruptRecord, PluginError, PluginMissing
from svc.paths import Path
from svc.plugins.configuration import merge_settings, validate_settings
from svc.plugins.discovery import PluginProblem, ProblemKind
from svc.plugins.needs import all_needed, needs_of, with_needs

if TYPE_CHECKING:
    from svc.database import Database
    from svc.database.version import Version
    from svc.hashing import Hash
    from svc.plugins.descriptor import PluginDescriptor
    from svc.plugins.loading import Plugins
    from svc.tree import Entry

__all__ = [
    "INITIAL_SET_PATH",
    "PLUGINS_DIRECTORY",
    "EnabledPlugin",
    "InitialSet",
    "Record",
    "awaits_first_plugins",
    "enabled_plugins",
    "first_plugins",
    "initial_set",
    "later_defaults",
    "needed_by",
    "not_enabled",
    "read_settings",
    "record_path",
    "records_of",
    "refused_plugins",
    "require_enabled",
    "stored_record",
    "stored_settings",
    "unreadable_plugins",
]

logger = logging.getLogger("svc.plugins")

PLUGINS_DIRECTORY = "plugins"
INITIAL_SET_PATH: Path = ("plugin-set",)


class Record(msgspec.Struct):
    """The JSON of an enabled plugin; settings as they were given."""

    id: str
    version: str
    configuration: dict[str, Any] = {}


class InitialSet(msgspec.Struct, omit_defaults=True):
    """The JSON at ``INITIAL_SET_PATH``: which first plugins the database was given, and which refused."""

    plugins: list[str]
    refused: list[str] = []


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin that a database has enabled, with the version that was enabled or configured last.

    ``configuration`` is an instance of the plugin's struct; None when it has none, or when it could not be
    validated: ``problem`` says why it cannot be used here. ``settings`` are as stored, secrets included.
    """

    id: str
    version: str
    configuration: Any = None
    problem: PluginProblem | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)


_left_out_cache: WeakKeyDictionary[Any, tuple[Hash, tuple[tuple[str, ...], tuple[str, ...]]]] = (
    WeakKeyDictionary()
)
_raw_cache: WeakKeyDictionary[Any, tuple[Hash, Mapping[str, EnabledPlugin]]] = WeakKeyDictionary()


def enabled_plugins(database: Database, plugins: Plugins | None = None) -> Mapping[str, EnabledPlugin]:
    """The plugins that are enabled in a database, by id, each behind those that it needs.

    Unusable ones are there too, each with its problem. Cheap enough for every request: one read of HEAD and
    one lookup, unless the system tree has changed. Without ``plugins``, the outcome of the boot, the records
    alone speak, and ``configuration`` is None.
    """
    system_root = database.head().system_root
    cache = _raw_cache if plugins is None else plugins.enabled_cache
    cached = cache.get(database)
    if cached is not None and cached[0] == system_root:
        return cached[1]
    # Reading may see a newer system tree than the head above; keeping it under the older hash only means
    # that it is read once more.
    resolved = {
        name: _resolve(record, plugins) for name, record in records_of(database).items() if record is not None
    }
    found = MappingProxyType(resolved if plugins is None else with_needs(resolved, plugins))
    cache[database] = (system_root, found)
    return found


def require_enabled(
    database: Database, plugins: Plugins, plugin_id: str, purpose: str | None = None
) -> EnabledPlugin:
    """Returns a plugin that must be usable in a database; ``purpose`` (``"--join"``) begins the error's text.

    Raises PluginMissing where it is not in use in this process or not enabled in the database, and
    PluginError where it does not accept its settings.
    """
    plugins.require(plugin_id, purpose)
    plugin = enabled_plugins(database, plugins).get(plugin_id)
    if plugin is None:
        subject = (
            f"{purpose} needs the plugin {plugin_id!r}" if purpose else f"The plugin {plugin_id!r} is needed"
        )
        raise PluginMissing(
            f"{subject}, which is not enabled in this database; 'svc plugins enable {plugin_id}' enables it.",
            plugin=plugin_id,
        )
    if plugin.problem is not None:
        raise PluginError(plugin.problem.message, plugin=plugin_id)
    return plugin


def first_plugins(plugins: Plugins, mode_of: str | None = None) -> tuple[str, ...]:
    """The plugins that ``initialize`` tries to enable."""
    if plugins.allowed is not None:
        return plugins.allowed
    modes = () if mode_of is None else all_needed([mode_of], plugins.descriptors)
    return (*plugins.default_set, *modes)


def awaits_first_plugins(database: Database) -> bool:
    """Whether a database has never been given any plugins, as one that was just exported."""
    return database.system().get(INITIAL_SET_PATH) is None


def refused_plugins(database: Database) -> tuple[str, ...]:
    """The plugins that ``initialize`` could not enable, and that nobody has enabled or given up since."""
    return _left_out(database)[0]


def later_defaults(database: Database, plugins: Plugins) -> tuple[str, ...]:
    """The plugins of the default set that joined it after a database was made, and are not enabled there."""
    initial = initial_set(database)
    if initial is None:
        return ()
    known = {*initial.plugins, *initial.refused, *records_of(database)}
    return tuple(name for name in plugins.default_set if name in plugins.descriptors and name not in known)


def unreadable_plugins(database: Database) -> tuple[str, ...]:
    """The plugins whose record in a database can't be read, so that they count as not enabled."""
    return _left_out(database)[1]


def needed_by(database: Database, plugins: Plugins, plugin_id: str) -> list[str]:
    """The plugins that are enabled in a database and need a given one."""
    return [name for name in enabled_plugins(database, plugins) if plugin_id in needs_of(plugins, name)]


def stored_settings(database: Database, plugin_id: str) -> dict[str, Any]:
    """The settings of an enabled plugin as they are stored, defaults not filled in; they may hold secrets.

    Of a database that was never given any plugins there are none, as its first start would have it.
    """
    _, record = stored_record(database, plugin_id)
    if record is None and awaits_first_plugins(database):
        return {}
    if record is None:
        raise not_enabled(plugin_id)
    return record.configuration


def read_settings(descriptor: PluginDescriptor, database: Database) -> Any:
    """Returns the settings of an enabled plugin in a database, as its struct, defaults filled in.

    Raises:
        PluginMissing: the plugin is not enabled in this database.
        PluginError: what is stored does not fit the struct.
    """
    return validate_settings(descriptor, stored_settings(database, descriptor.id))


def records_of(database: Database) -> Mapping[str, Record | None]:
    """The records of a database by plugin; None for one that can't be read."""
    system = database.system()
    if system.get((PLUGINS_DIRECTORY,)) is None:
        return {}
    return {name: _read(system, name, entry) for name, entry in system.entries((PLUGINS_DIRECTORY,))}


def initial_set(database: Database) -> InitialSet | None:
    """Which first plugins a database was given; None: it was given none, or that can't be read."""
    system = database.system()
    entry = system.get(INITIAL_SET_PATH)
    if entry is None:
        return None
    try:
        return msgspec.json.decode(system.read_all(entry), type=InitialSet)
    except msgspec.DecodeError:
        return None
    except CorruptRecord as error:
        if not error.details.get("lost"):
            raise
        return None


def stored_record(database: Database, plugin_id: str) -> tuple[Entry | None, Record | None]:
    """The entry of a plugin's record, and the record; None where there is none, or it can't be read."""
    system = database.system()
    entry = system.get(record_path(plugin_id))
    return entry, None if entry is None else _read(system, plugin_id, entry)


def record_path(plugin_id: str) -> Path:
    """Where the record of a plugin stands in the system tree."""
    return (PLUGINS_DIRECTORY, plugin_id)


def not_enabled(plugin_id: str) -> PluginMissing:
    """What is raised where a plugin is not enabled."""
    return PluginMissing(f"The plugin {plugin_id!r} is not enabled in this database.", plugin=plugin_id)


def _left_out(database: Database) -> tuple[tuple[str, ...], tuple[str, ...]]:
    system_root = database.head().system_root
    cached = _left_out_cache.get(database)
    if cached is None or cached[0] != system_root:
        records, initial = records_of(database), initial_set(database)
        refused = tuple(name for name in (initial.refused if initial else ()) if name not in records)
        unreadable = tuple(name for name, record in records.items() if record is None)
        cached = _left_out_cache[database] = (system_root, (refused, unreadable))
    return cached[1]


def _resolve(record: Record, plugins: Plugins | None) -> EnabledPlugin:
    settings = MappingProxyType(record.configuration)
    if plugins is None:
        return EnabledPlugin(record.id, record.version, settings=settings)
    descriptor = plugins.descriptors.get(record.id)
    if descriptor is None:
        return EnabledPlugin(record.id, record.version, problem=_absence(record, plugins), settings=settings)
    known = {name: value for name, value in settings.items() if name not in descriptor.retired}
    settings = MappingProxyType(known)
    try:
        merged = merge_settings(settings, plugins.overrides.get(record.id, {}))
        configuration = validate_settings(descriptor, merged)
    except PluginError as error:
        problem = PluginProblem(record.id, ProblemKind.CONFIGURATION, error.message)
        return EnabledPlugin(record.id, record.version, problem=problem, settings=settings)
    return EnabledPlugin(record.id, record.version, configuration=configuration, settings=settings)


def _absence(record: Record, plugins: Plugins) -> PluginProblem:
    present = plugins.problem(record.id)
    if present is not None:
        return present
    if record.id in plugins.installed:
        message = f"The plugin {record.id!r} is enabled in this database, and not allowed here."
        return PluginProblem(record.id, ProblemKind.NOT_ALLOWED, message)
    message = (
        f"The plugin {record.id!r} {record.version} is enabled in this database, and not installed here."
    )
    return PluginProblem(record.id, ProblemKind.MISSING, message)


def _read(system: Version, name: str, entry: Entry) -> Record | None:
    """Reads a record; None for one that can't be read, or that a repair gave up: it can be written again."""
    try:
        record = msgspec.json.decode(system.read_all(entry), type=Record)
    except (msgspec.DecodeError, CorruptRecord) as error:
        if isinstance(error, CorruptRecord) and not error.details.get("lost"):
            raise
        logger.error("The record of the plugin %r in the system tree cannot be read: %s", name, error)
        return None
    return record if record.id == name else None
