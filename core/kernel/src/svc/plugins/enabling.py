"""Changes which plugins a database uses, and their settings; ``enabled`` reads them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import Conflict, PluginError, PluginMissing, ReadOnly
from svc.findings import describe_error, describe_failure
from svc.plugins.configuration import (
    merge_settings,
    require_fitting_options,
    settings_as_stored,
    validate_settings,
)
from svc.plugins.context import make_context
from svc.plugins.discovery import PluginProblem, ProblemKind
from svc.plugins.enabled import (
    INITIAL_SET_PATH,
    EnabledPlugin,
    InitialSet,
    Record,
    awaits_first_plugins,
    enabled_plugins,
    first_plugins,
    initial_set,
    needed_by,
    not_enabled,
    record_path,
    records_of,
    refused_plugins,
    stored_record,
    unreadable_plugins,
)
from svc.plugins.needs import in_order_of_needs, require_needs

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins.loading import Plugins
    from svc.tree import Entry

__all__ = ["configure", "disable", "enable", "initialize"]

logger = logging.getLogger("svc.plugins")


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
    present = {name for name, record in records_of(database).items() if record is not None}
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
            transaction.put_system(record_path(plugin_id), _encode(plugins, plugin_id, configuration))
        initial = InitialSet(
            [plugin_id for plugin_id, _ in chosen], [problem.plugin_id for problem in problems]
        )
        transaction.put_system(INITIAL_SET_PATH, msgspec.json.encode(initial))
    return tuple(problems)


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
        entry, present = stored_record(database, plugin_id)
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
        entry, present = stored_record(database, plugin_id)
        if entry is None or present is None:
            raise not_enabled(plugin_id)
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
    _require_writable(database)
    _require_not_needed(database, plugins, plugin_id)
    present = enabled_plugins(database, plugins).get(plugin_id)
    if present is None and plugin_id in refused_plugins(database):
        _give_up(database, plugin_id, actor)
        return None
    if present is None and plugin_id not in unreadable_plugins(database):
        raise not_enabled(plugin_id)
    configuration = present.configuration if present is not None else None
    warning = None
    try:
        plugins.call("svc_disable", plugin_id, context=make_context(plugin_id, configuration, database))
    except (Exception, SystemExit) as error:
        logger.error("The plugin %r failed while it was disabled.", plugin_id, exc_info=error)
        warning = f"The plugin {plugin_id!r} failed while it was disabled: {describe_failure(error)}"
    with database.transaction(actor=actor, message=f"Disable the plugin {plugin_id}") as transaction:
        transaction.delete_system(record_path(plugin_id))
    return warning


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
        transaction.put_system(record_path(plugin_id), content, condition=same_content(entry))
    stored = enabled_plugins(database, plugins).get(plugin_id)
    if stored is None:
        raise not_enabled(plugin_id)
    return stored


def _accepted(database: Database, plugins: Plugins, plugin_id: str, settings: Mapping[str, Any]) -> Any:
    """The validated settings, after the plugin itself has agreed to be enabled with them."""
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
    return msgspec.json.encode(Record(plugin_id, plugins.descriptors[plugin_id].version, kept))


def _require_not_needed(database: Database, plugins: Plugins, plugin_id: str) -> None:
    users = needed_by(database, plugins, plugin_id)
    if users:
        raise Conflict(
            f"The plugin {plugin_id!r} is needed by {', '.join(map(repr, users))}: disable "
            f"{'it' if len(users) == 1 else 'them'} first.",
            plugin=plugin_id,
        )


def _give_up(database: Database, plugin_id: str, actor: str | None) -> None:
    with database.transaction(actor=actor, message=f"Give up the plugin {plugin_id}") as transaction:
        initial = initial_set(database)
        assert initial is not None
        kept = [name for name in initial.refused if name != plugin_id]
        transaction.put_system(INITIAL_SET_PATH, msgspec.json.encode(InitialSet(initial.plugins, kept)))


def _kind(error: PluginError | PluginMissing) -> ProblemKind:
    return ProblemKind.MISSING if isinstance(error, PluginMissing) else ProblemKind.CONFIGURATION


def _require_writable(database: Database) -> None:
    if getattr(database, "read_only", False):
        raise ReadOnly("Plugins cannot be changed in a database that is open for reading only.")
