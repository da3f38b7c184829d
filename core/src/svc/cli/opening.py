"""How commands open a database: checked against the plugin that the command belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from svc.errors import PluginMissing

if TYPE_CHECKING:
    import click

    from svc.database import Database
    from svc.plugins import Plugins

__all__ = ["DEFAULT_DATABASE", "boot_commands", "boot_plugins", "open_database"]

DEFAULT_DATABASE = "./data.svcdb"


def open_database(
    source: click.Context | str | os.PathLike[str],
    plugin_id: str | None = None,
    *,
    read_only: bool = False,
    create: bool = False,
) -> Database:
    """Opens the database of a command; the caller closes it. Blocks.

    Args:
        source: path of the database, or the click context of a command with a ``database`` option.
        plugin_id: the plugin that the command belongs to; None for commands of the kernel. A database that
            was never given any plugins, as an export, is taken for what its first start makes of it.
        read_only: open for reading.
        create: make the database when it is missing, with its first plugins enabled.

    Raises:
        PluginMissing: the plugin is not enabled in this database.
        DatabaseNotFound: there is none, and ``create`` is false; other errors as ``Database``.
    """
    from svc.database import Database
    from svc.plugins import awaits_first_plugins, initialize
    from svc.server.progress import progress_bar

    path = source if isinstance(source, str | os.PathLike) else _database_of(source)
    with progress_bar("Rebuilding the key index") as progress:
        database = Database(path, read_only=read_only, create=create, progress=progress)
    try:
        is_new = plugin_id is not None and not read_only and awaits_first_plugins(database)
        if create or is_new:
            initialize(database, boot_commands())
        if plugin_id is not None and plugin_id not in _plugins_of(database):
            raise PluginMissing(
                f"This needs the plugin {plugin_id!r}, which is not enabled in {os.fspath(path)}; "
                f"'svc plugins enable {plugin_id} -D {os.fspath(path)}' enables it.",
                plugin=plugin_id,
            )
    except BaseException:
        database.close()
        raise
    return database


def boot_commands() -> Plugins:
    """Boots the plugins as far as their commands go, once; ``SVC_PLUGINS`` says which may be used.

    Routes and the other families stay out, and with them most of what there is to import.
    """
    from svc.plugins import load_plugins, parse_allowed

    return _booted("commands", lambda: load_plugins(parse_allowed(_allowed()), families=("commands",)))


def boot_plugins() -> Plugins:
    """Boots the plugins wholly, once: for what looks at all that they add."""
    from svc.plugins import load_plugins, parse_allowed

    def load() -> Plugins:
        from svc.pipeline import check_route

        return load_plugins(parse_allowed(_allowed()), check_route=check_route)

    return _booted("plugins", load)


def _plugins_of(database: Database) -> Collection[str]:
    """The plugins that a database has enabled, or will have once somebody may write to it."""
    from svc.plugins import awaits_first_plugins, enabled_plugins

    if not awaits_first_plugins(database):
        return enabled_plugins(database)
    plugins = boot_commands()
    first = plugins.default_set if plugins.allowed is None else plugins.allowed
    return {*enabled_plugins(database), *first}


def _booted(kind: str, load: Callable[[], Plugins]) -> Plugins:
    import click

    context = click.get_current_context(silent=True)
    meta: dict[str, Any] = context.meta if context is not None else {}
    key = f"svc.{kind}"
    if key not in meta:
        meta[key] = load()
    plugins: Plugins = meta[key]
    return plugins


def _allowed() -> str | None:
    return os.environ.get("SVC_PLUGINS")


def _database_of(context: click.Context) -> str:
    current: click.Context | None = context
    while current is not None:
        database = current.params.get("database")
        if isinstance(database, str):
            return database
        current = current.parent
    return os.environ.get("SVC_DATABASE") or DEFAULT_DATABASE
