"""How commands open a database: checked against the plugin that the command belongs to."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from svc.errors import PluginMissing, UsageError
from svc.limits import MAXIMUM_TREE_ENTRIES

if TYPE_CHECKING:
    import click

    from svc.database import Database, View
    from svc.database.content_checks import PathCheck
    from svc.findings import Finding
    from svc.log import StorageBackend
    from svc.plugins import Extension, Family, PluginContext, PluginDescriptor, Plugins

__all__ = [
    "DEFAULT_DATABASE",
    "boot_commands",
    "boot_for_diagnosis",
    "boot_plugins",
    "extensions_of",
    "file_context_of",
    "open_database",
    "plugin_of_module",
    "require_backend",
    "require_file_name",
    "storage_backends",
    "usable_descriptors",
]

T = TypeVar("T")

DEFAULT_DATABASE = "./data.svcdb"
_LOOK_SECONDS = 0.05
_OF_SERVERS = ("http", "https")
_HOST_AND_PORT = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+|\[[0-9a-fA-F:]+\]):\d{1,5}(/\S*)?")


def open_database(
    source: click.Context | str | os.PathLike[str],
    plugin_id: str | None = None,
    *,
    read_only: bool = False,
    create: bool = False,
    max_tree_entries: int = MAXIMUM_TREE_ENTRIES,
) -> Database:
    """Opens the database of a command; the caller closes it. Blocks.

    Args:
        source: path or URL of the database, or the click context of a command with a ``database`` option.
        plugin_id: the plugin that the command belongs to; it may read its views, and those of plugins that it
            needs. None for commands of the kernel. A database that was never given any plugins, as an export,
            is taken for what its first start makes of it.
        read_only: open for reading.
        create: make the database when it is missing, with its first plugins enabled.
        max_tree_entries: as for ``Database``; a process that a server started is given the server's.

    Raises:
        PluginMissing: the plugin is not enabled in this database.
        DatabaseNotFound: there is none, and ``create`` is false; other errors as ``Database``.
    """
    from svc.database import Database
    from svc.plugins import awaits_first_plugins, initialize
    from svc_cli.progress import progress_bar

    path = source if isinstance(source, str | os.PathLike) else _database_of(source)
    with progress_bar("Rebuilding the key index") as progress:
        database = Database(
            path,
            read_only=read_only,
            create=create,
            progress=progress,
            max_tree_entries=max_tree_entries,
            backends=storage_backends(path),
        )
    try:
        is_new = plugin_id is not None and not read_only and awaits_first_plugins(database)
        if create or is_new:
            initialize(database, boot_commands())
        if plugin_id is not None and plugin_id not in _plugins_of(database):
            raise PluginMissing(
                f"This needs the plugin {plugin_id!r}, which is not enabled in {database.location}; "
                f"'svc plugins enable {plugin_id} -D {database.location}' enables it.",
                plugin=plugin_id,
            )
        if not read_only:
            database.use_content_checks_later(lambda: _content_checks_of(database))
        if plugin_id is not None:
            database.register_views_later(lambda: _views_of(database, plugin_id))
    except BaseException:
        database.close()
        raise
    return database


def require_file_name(database: str, kinds: str = "the path of a database file") -> str:
    """Returns what ``--database`` names, if this process can open that itself; else raises UsageError."""
    from svc.log import scheme_of, shown_location

    if not database.strip():
        raise UsageError(f"--database is empty; it takes {kinds}.", field="database")
    if scheme_of(database) in _OF_SERVERS:
        shown = shown_location(database)[:200]
        raise UsageError(f"--database takes {kinds} here, not {shown!r}.", field="database")
    if _HOST_AND_PORT.fullmatch(database) and not os.path.lexists(database):
        raise UsageError(
            f"There is no file {database!r}; if a server is meant, it is http://{database} or https://{database}.",
            field="database",
        )
    require_backend(database, storage_backends(database), kinds)
    return database


def require_backend(
    database: str, backends: Mapping[str, StorageBackend], kinds: str = "the path of a database file"
) -> StorageBackend:
    """Returns what opens the database that ``--database`` names."""
    from svc.log import backend_of

    try:
        return backend_of(database, backends)
    except UsageError as error:
        raise UsageError(f"--database takes {kinds}: {error.message}", **error.details) from None


def storage_backends(location: str | os.PathLike[str]) -> Mapping[str, StorageBackend]:
    """Returns what the allowed plugins open a database with, by scheme; boots none for a path."""
    from svc.log import KERNEL_BACKENDS, scheme_of

    if (scheme_of(location) or "file") in KERNEL_BACKENDS:
        return {}
    from svc.plugins import load_plugins, parse_allowed

    plugins = _booted(
        "storage backends", lambda: load_plugins(parse_allowed(_allowed()), families=("storage_backends",))
    )
    return plugins.registries.storage_backends.values


def boot_commands() -> Plugins:
    """Boots the plugins that ``SVC_PLUGINS`` allows, once, as far as their commands go: imports little."""
    from svc.plugins import load_plugins, parse_allowed

    return _booted("commands", lambda: load_plugins(parse_allowed(_allowed()), families=()))


def extensions_of(database: Database, plugin_id: str, family: Family[T]) -> Mapping[str, Extension[T]]:
    """Returns what the plugins enabled in a database have added to a family, by name; loads no other family.

    Args:
        database: the open database.
        plugin_id: the plugin that the command belongs to.
        family: a family that this plugin drives.

    Raises:
        PluginError: it does not drive the family.
        PluginMissing: it is not in use here.
    """
    from svc.plugins.lifecycle import usable_extensions

    plugins = _booted_family(f"{plugin_id}:{family.name}")
    plugins.require(plugin_id)
    return usable_extensions(database, plugins, plugin_id, family)


def _booted_family(name: str) -> Plugins:
    from svc.plugins import load_plugins, parse_allowed

    return _booted(name, lambda: load_plugins(parse_allowed(_allowed()), families=(name,)))


def boot_plugins(database: Database | None = None) -> Plugins:
    """Boots the plugins wholly, once: for what looks at all that they add.

    While processes serve the database, the plugins that they allow are booted, not those of ``SVC_PLUGINS``.
    """
    from svc.plugins import load_plugins, parse_allowed

    def load() -> Plugins:
        from svc.pipeline import check_route

        allowed = parse_allowed(_allowed())
        if database is not None:
            from svc_cli.processes.diagnosis import allowed_by
            from svc_cli.processes.registration import published_lists

            allowed = allowed_by(published_lists(database.state_directory), allowed)
        return load_plugins(allowed, check_route=check_route)

    return _booted("plugins" if database is None else "plugins of the database", load)


def boot_for_diagnosis(
    database: Database | None = None,
) -> tuple[Plugins | None, tuple[Finding, ...]]:
    """Boots the plugins as ``boot_plugins``, and waits for none that hangs.

    Returns None with the findings that name those.
    """
    import click

    from svc.executor import Executor
    from svc.plugins.steps import hanging_steps

    context = click.get_current_context(silent=True)

    def boot() -> Plugins:
        with contextlib.nullcontext() if context is None else context.scope(cleanup=False):
            return boot_plugins(database)

    booted = Executor().begin_beside(boot)
    while True:
        try:
            return booted(_LOOK_SECONDS), ()
        except TimeoutError:
            hanging = hanging_steps()
            if hanging:
                return None, hanging


def plugin_of_module(module: str) -> str | None:
    """Returns the plugin whose operations a module declares; None: the kernel's.

    Raises:
        PluginMissing: its plugin is not in use here.
    """
    for descriptor in boot_commands().descriptors.values():
        if module in descriptor.operations:
            return descriptor.id
    if module.partition(".")[0] == "svc":
        return None
    raise PluginMissing(f"No plugin that is in use here declares the operations of {module!r}.")


def file_context_of(database: Database, module: str) -> PluginContext | None:
    """Returns the context, in an opened file, of the plugin whose operations a module declares."""
    from svc.plugins import enabled_plugins, validate_settings
    from svc.plugins.context import make_context

    plugin_id = plugin_of_module(module)
    if plugin_id is None:
        return None
    plugins = boot_commands()
    enabled = enabled_plugins(database, plugins).get(plugin_id)
    # One that the first start will enable has its settings by default.
    settings = (
        validate_settings(plugins.descriptors[plugin_id], {}) if enabled is None else enabled.configuration
    )
    return make_context(plugin_id, settings, database, _ExtensionsOfCommand(database))


def usable_descriptors() -> tuple[PluginDescriptor, ...]:
    """Returns the descriptors of the plugins that ``SVC_PLUGINS`` allows; imports no more of them."""
    from svc.plugins import load_descriptors, parse_allowed

    return _booted("descriptors", lambda: load_descriptors(parse_allowed(_allowed())))


def _views_of(database: Database, plugin_id: str) -> Iterable[View]:
    from svc.plugins import all_needed, enabled_plugins, load_plugins, validate_settings
    from svc.plugins.context import make_context
    from svc.plugins.lifecycle import bound_view

    used = all_needed([plugin_id], boot_commands().descriptors)
    plugins = load_plugins(used, families=("views",))
    enabled = enabled_plugins(database, plugins)
    source = _ExtensionsOfCommand(database)
    views = []
    for item in plugins.registries.views:
        plugin = enabled.get(item.plugin_id)
        if plugin is not None:
            configuration = plugin.configuration
        elif item.plugin_id == plugin_id:
            # One that the first start will enable has its settings by default.
            configuration = validate_settings(plugins.descriptors[plugin_id], {})
        else:
            continue
        views.append(bound_view(item.value, make_context(item.plugin_id, configuration, database, source)))
    return views


def _content_checks_of(database: Database) -> Iterable[PathCheck]:
    from svc.plugins import enabled_plugins, load_plugins, parse_allowed
    from svc.plugins.context import make_context
    from svc.plugins.lifecycle import is_usable, path_checks

    plugins = _booted(
        "content checks", lambda: load_plugins(parse_allowed(_allowed()), families=("content_checks",))
    )
    source = _ExtensionsOfCommand(database)
    contexts = {
        plugin.id: make_context(plugin.id, plugin.configuration, database, source)
        for plugin in enabled_plugins(database, plugins).values()
        if is_usable(plugin)
    }
    return path_checks(plugins.registries, contexts)


class _ExtensionsOfCommand:
    """Loads what others have added to the families of a command's plugin, each when it is needed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Mapping[str, Extension[Any]]] = {}
        self._booted: list[Plugins] = []

    def extensions_of(self, driver_id: str, family: Family[T]) -> Mapping[str, Extension[T]]:
        found = self._known.get(family.name)
        if found is None:
            found = self._known[family.name] = extensions_of(self._database, driver_id, family)
            self._booted.append(_booted_family(f"{driver_id}:{family.name}"))
        return found

    def is_current(self, plugin_id: str, configuration: Any) -> bool:
        return True

    def is_broken(self, plugin_id: str) -> bool:
        from svc.plugins import enabled_plugins
        from svc.plugins.lifecycle import cannot_be_used

        found = (enabled_plugins(self._database, one).get(plugin_id) for one in self._booted)
        return any(map(cannot_be_used, found))


def _plugins_of(database: Database) -> Collection[str]:
    """The plugins that are enabled in a database, or will be when it can be written."""
    from svc.plugins import awaits_first_plugins, enabled_plugins

    if not awaits_first_plugins(database):
        return enabled_plugins(database)
    plugins = boot_commands()
    first = plugins.default_set if plugins.allowed is None else plugins.allowed
    return {*enabled_plugins(database), *first}


def _booted(kind: str, load: Callable[[], T]) -> T:
    import click

    context = click.get_current_context(silent=True)
    meta: dict[str, Any] = context.meta if context is not None else {}
    key = f"svc.{kind}"
    if key not in meta:
        meta[key] = load()
    found: T = meta[key]
    return found


def _allowed() -> str | None:
    return os.environ.get("SVC_PLUGINS")


def _database_of(context: click.Context) -> str:
    current: click.Context | None = context
    while current is not None:
        database = current.params.get("database")
        if isinstance(database, str):
            return database
        current = current.parent
    return require_file_name(os.environ.get("SVC_DATABASE", DEFAULT_DATABASE))
