"""The third level: which plugins a database uses, and with which settings.

Each enabled plugin has a record in the system tree at ``("plugins", id)``: JSON with id, enabled version and
settings. So workers, replicas and backups agree, and restoring an old snapshot changes none of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from svc.errors import Conflict, CorruptRecord, PluginError, PluginMissing, ReadOnly
from svc.findings import describe_error, describe_failure
from svc.paths import Path
from svc.plugins.configuration import (
    merge_settings,
    require_fitting_options,
    settings_as_stored,
    validate_settings,
)
from svc.plugins.discovery import PluginProblem, ProblemKind
from svc.plugins.needs import all_needed, in_order_of_needs, needs_of, require_needs, with_needs

if TYPE_CHECKING:
    from svc.database import Database
    from svc.database.version import Version
    from svc.hashing import Hash
    from svc.plugins.descriptor import PluginDescriptor
    from svc.plugins.loading import Plugins
    from svc.tree import Entry

__all__ = [
    "PLUGINS_DIRECTORY",
    "EnabledPlugin",
    "awaits_first_plugins",
    "configure",
    "disable",
    "enable",
    "enabled_plugins",
    "first_plugins",
    "initialize",
    "later_defaults",
    "needed_by",
    "read_settings",
    "refused_plugins",
    "require_enabled",
    "stored_settings",
    "unreadable_plugins",
]

logger = logging.getLogger("svc.plugins")

PLUGINS_DIRECTORY = "plugins"
INITIAL_SET_PATH: Path = ("plugin-set",)


class _Record(msgspec.Struct):
    id: str
    version: str
    configuration: dict[str, Any] = {}


class _InitialSet(msgspec.Struct, omit_defaults=True):
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
        name: _resolve(record, plugins) for name, record in _records(database).items() if record is not None
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


def initialize(
    database: Database, plugins: Plugins, *, actor: str | None = None, mode_of: str | None = None
) -> tuple[PluginProblem, ...]:
    """Enables the first plugins of a database that has never been given any; does nothing in any other.

    These are the explicitly allowed ones if the deployment names any, else the default plugin set and
    ``mode_of``, the plugin of the auth mode that a server was told to use, with what that needs; each behind
    those that it needs. What cannot be enabled (it is broken, needs settings, or a plugin that is not among
    them) is left out and returned, and ``refused_plugins`` tells of it from then on. Writes; may block.

    Raises PluginError, and writes nothing, where it is an option of the deployment that does not fit.
    """
    if not awaits_first_plugins(database):
        return ()
    if getattr(database, "read_only", False):
        return ()
    chosen: list[tuple[str, Any]] = []
    problems: list[PluginProblem] = []
    present = {name for name, record in _records(database).items() if record is not None}
    first = first_plugins(plugins, mode_of)
    require_fitting_options(plugins, {name: {} for name in first if name not in present})
    for plugin_id in in_order_of_needs(first, plugins):
        if plugin_id in present:
            continue  # enabled by hand before the first start: its settings stay
        try:
            require_needs(plugins, plugin_id, {*present, *(name for name, _ in chosen)})
            configuration = _accepted(database, plugins, plugin_id, {})
        except (PluginError, PluginMissing) as error:
            logger.warning("not enabled in the new database: %s", error.message)
            problems.append(PluginProblem(plugin_id, _kind(error), error.message))
        else:
            chosen.append((plugin_id, configuration))
    with database.transaction(actor=actor, message="Enable the first plugins") as transaction:
        for plugin_id, configuration in chosen:
            transaction.put_system(_path(plugin_id), _encode(plugins, plugin_id, configuration))
        initial = _InitialSet(
            [plugin_id for plugin_id, _ in chosen], [problem.plugin_id for problem in problems]
        )
        transaction.put_system(INITIAL_SET_PATH, msgspec.json.encode(initial))
    return tuple(problems)


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
    initial = _initial_set(database)
    if initial is None:
        return ()
    known = {*initial.plugins, *initial.refused, *_records(database)}
    return tuple(name for name in plugins.default_set if name in plugins.descriptors and name not in known)


def unreadable_plugins(database: Database) -> tuple[str, ...]:
    """The plugins whose record in a database can't be read, so that they count as not enabled."""
    return _left_out(database)[1]


def _left_out(database: Database) -> tuple[tuple[str, ...], tuple[str, ...]]:
    system_root = database.head().system_root
    cached = _left_out_cache.get(database)
    if cached is None or cached[0] != system_root:
        records, initial = _records(database), _initial_set(database)
        refused = tuple(name for name in (initial.refused if initial else ()) if name not in records)
        unreadable = tuple(name for name, record in records.items() if record is None)
        cached = _left_out_cache[database] = (system_root, (refused, unreadable))
    return cached[1]


def enable(
    database: Database,
    plugins: Plugins,
    plugin_id: str,
    settings: Mapping[str, Any] | None = None,
    *,
    actor: str | None = None,
) -> EnabledPlugin:
    """Enables a plugin in a database, durably when this returns. Blocks.

    Where it is enabled already, ``settings`` are laid over those that it has. Raises PluginMissing if it is
    not installed, not allowed or has a problem; PluginError if the settings are not valid (``field`` names
    one), its ``svc_enable`` failed, or a plugin that it needs is not enabled: nothing is enabled unasked.
    """
    from svc.database.attempts import attempt

    _require_writable(database)
    plugins.require(plugin_id)
    require_needs(plugins, plugin_id, enabled_plugins(database, plugins))

    def work() -> EnabledPlugin:
        entry, present = _stored(database, plugin_id)
        merged = merge_settings(present.configuration if present else {}, settings or {})
        return _store(database, plugins, plugin_id, merged, entry, actor, f"Enable the plugin {plugin_id}")

    return attempt(work, f"The plugin {plugin_id!r}")


def configure(
    database: Database,
    plugins: Plugins,
    plugin_id: str,
    settings: Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]],
    *,
    actor: str | None = None,
) -> EnabledPlugin:
    """Replaces all settings of a plugin, which must be enabled. Blocks; raises as ``enable``.

    ``settings`` may make the new ones of those that are stored; it is called again where these were changed
    meanwhile. Raises Conflict where they change all the time.
    """
    from svc.database.attempts import attempt

    _require_writable(database)
    plugins.require(plugin_id)

    def work() -> EnabledPlugin:
        entry, present = _stored(database, plugin_id)
        if entry is None or present is None:
            raise _not_enabled(plugin_id)
        new = settings(present.configuration) if callable(settings) else settings
        return _store(database, plugins, plugin_id, new, entry, actor, f"Configure the plugin {plugin_id}")

    return attempt(work, f"The plugin {plugin_id!r}")


def disable(database: Database, plugins: Plugins, plugin_id: str, *, actor: str | None = None) -> str | None:
    """Disables a plugin in a database; its settings are forgotten. Blocks.

    It works for a plugin that is not installed too, whatever its ``svc_disable`` does, and where its record
    can't be read. One of ``refused_plugins`` is given up. If ``svc_disable`` failed, returns a sentence,
    without secrets. Raises PluginMissing where it is not enabled, and Conflict, which names those that need
    it.
    """
    from svc.plugins.lifecycle import make_context

    _require_writable(database)
    _require_not_needed(database, plugins, plugin_id)
    present = enabled_plugins(database, plugins).get(plugin_id)
    if present is None and plugin_id in refused_plugins(database):
        _give_up(database, plugin_id, actor)
        return None
    if present is None and plugin_id not in unreadable_plugins(database):
        raise _not_enabled(plugin_id)
    configuration = present.configuration if present is not None else None
    warning = None
    try:
        plugins.call("svc_disable", plugin_id, context=make_context(plugin_id, configuration, database))
    except (Exception, SystemExit) as error:
        logger.error("The plugin %r failed while it was disabled.", plugin_id, exc_info=error)
        warning = f"The plugin {plugin_id!r} failed while it was disabled: {describe_failure(error)}"
    with database.transaction(actor=actor, message=f"Disable the plugin {plugin_id}") as transaction:
        transaction.delete_system(_path(plugin_id))
    return warning


def needed_by(database: Database, plugins: Plugins, plugin_id: str) -> list[str]:
    """The plugins that are enabled in a database and need a given one."""
    return [name for name in enabled_plugins(database, plugins) if plugin_id in needs_of(plugins, name)]


def stored_settings(database: Database, plugin_id: str) -> dict[str, Any]:
    """The settings of an enabled plugin as they are stored, defaults not filled in; they may hold secrets.

    Of a database that was never given any plugins there are none, as its first start would have it.
    """
    _, record = _stored(database, plugin_id)
    if record is None and awaits_first_plugins(database):
        return {}
    if record is None:
        raise _not_enabled(plugin_id)
    return record.configuration


def read_settings(descriptor: PluginDescriptor, database: Database) -> Any:
    """Returns the settings of an enabled plugin in a database, as its struct, defaults filled in.

    Raises:
        PluginMissing: the plugin is not enabled in this database.
        PluginError: what is stored does not fit the struct.
    """
    return validate_settings(descriptor, stored_settings(database, descriptor.id))


def _store(
    database: Database,
    plugins: Plugins,
    plugin_id: str,
    settings: Mapping[str, Any],
    entry: Entry | None,
    actor: str | None,
    message: str,
) -> EnabledPlugin:
    """Writes the record, where ``entry`` is still what is stored; else raises PreconditionFailed."""
    from svc.database.json_records import same_content

    configuration = _accepted(database, plugins, plugin_id, settings)
    content = _encode(plugins, plugin_id, configuration, settings)
    with database.transaction(actor=actor, message=message) as transaction:
        transaction.put_system(_path(plugin_id), content, condition=same_content(entry))
    stored = enabled_plugins(database, plugins).get(plugin_id)
    if stored is None:
        raise _not_enabled(plugin_id)
    return stored


def _accepted(database: Database, plugins: Plugins, plugin_id: str, settings: Mapping[str, Any]) -> Any:
    """The validated settings, after the plugin itself has agreed to be enabled with them."""
    from svc.plugins.lifecycle import make_context

    descriptor = plugins.require(plugin_id)
    configuration = validate_settings(descriptor, settings)
    effective = validate_settings(descriptor, merge_settings(settings, plugins.overrides.get(plugin_id, {})))
    try:
        plugins.call("svc_enable", plugin_id, context=make_context(plugin_id, effective, database))
    except (PluginError, PluginMissing):
        raise
    except (Exception, SystemExit) as error:
        logger.error("The plugin %r failed while it was enabled.", plugin_id, exc_info=error)
        message = f"The plugin {plugin_id!r} refused to be enabled: {describe_error(error)}."
        raise PluginError(message, plugin=plugin_id) from error
    return configuration


def _encode(
    plugins: Plugins, plugin_id: str, configuration: Any, settings: Mapping[str, Any] | None = None
) -> bytes:
    """Returns the record of a plugin, with only what was set, in its checked form.

    So new defaults of a newer version reach a database that never asked for the old ones.
    """
    checked = settings_as_stored(configuration)
    kept = {name: checked[name] for name in settings or {} if name in checked}
    return msgspec.json.encode(_Record(plugin_id, plugins.descriptors[plugin_id].version, kept))


def _resolve(record: _Record, plugins: Plugins | None) -> EnabledPlugin:
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


def _require_not_needed(database: Database, plugins: Plugins, plugin_id: str) -> None:
    users = needed_by(database, plugins, plugin_id)
    if users:
        raise Conflict(
            f"The plugin {plugin_id!r} is needed by {', '.join(map(repr, users))}: disable "
            f"{'it' if len(users) == 1 else 'them'} first.",
            plugin=plugin_id,
        )


def _absence(record: _Record, plugins: Plugins) -> PluginProblem:
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


def _records(database: Database) -> Mapping[str, _Record | None]:
    system = database.system()
    if system.get((PLUGINS_DIRECTORY,)) is None:
        return {}
    return {name: _read(system, name, entry) for name, entry in system.entries((PLUGINS_DIRECTORY,))}


def _initial_set(database: Database) -> _InitialSet | None:
    system = database.system()
    entry = system.get(INITIAL_SET_PATH)
    if entry is None:
        return None
    try:
        return msgspec.json.decode(system.read_all(entry), type=_InitialSet)
    except msgspec.DecodeError:
        return None
    except CorruptRecord as error:
        if not error.details.get("lost"):
            raise
        return None


def _give_up(database: Database, plugin_id: str, actor: str | None) -> None:
    with database.transaction(actor=actor, message=f"Give up the plugin {plugin_id}") as transaction:
        initial = _initial_set(database)
        assert initial is not None
        kept = [name for name in initial.refused if name != plugin_id]
        transaction.put_system(INITIAL_SET_PATH, msgspec.json.encode(_InitialSet(initial.plugins, kept)))


def _not_enabled(plugin_id: str) -> PluginMissing:
    return PluginMissing(f"The plugin {plugin_id!r} is not enabled in this database.", plugin=plugin_id)


def _stored(database: Database, plugin_id: str) -> tuple[Entry | None, _Record | None]:
    system = database.system()
    entry = system.get(_path(plugin_id))
    return entry, None if entry is None else _read(system, plugin_id, entry)


def _read(system: Version, name: str, entry: Entry) -> _Record | None:
    """Reads a record; None for one that can't be read, or that a repair gave up: it can be written again."""
    try:
        record = msgspec.json.decode(system.read_all(entry), type=_Record)
    except (msgspec.DecodeError, CorruptRecord) as error:
        if isinstance(error, CorruptRecord) and not error.details.get("lost"):
            raise
        logger.error("The record of the plugin %r in the system tree cannot be read: %s", name, error)
        return None
    return record if record.id == name else None


def _path(plugin_id: str) -> Path:
    return (PLUGINS_DIRECTORY, plugin_id)


def _kind(error: PluginError | PluginMissing) -> ProblemKind:
    return ProblemKind.MISSING if isinstance(error, PluginMissing) else ProblemKind.CONFIGURATION


def _require_writable(database: Database) -> None:
    if getattr(database, "read_only", False):
        raise ReadOnly("Plugins cannot be changed in a database that is open for reading only.")
