"""From settings to an application: plugins booted, auth mode chosen, service made. Opens no database.

Runs in the process that serves (and in the check before a start), never in gunicorn's master.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from svc.database import Database
from svc.pipeline import (
    Application,
    Lifetime,
    Limits,
    PipelineSettings,
    Service,
    check_route,
    create_service_app,
)
from svc.plugins import (
    PluginProblem,
    Plugins,
    SelectedAuthMode,
    initialize,
    load_plugins,
    parse_options,
    select_auth_mode,
)
from svc_server.hanging import tell_of_hanging_plugins
from svc_server.options import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from svc.executor import Executor

__all__ = ["Assembly", "assemble", "boot_plugins", "make_application", "opener_of"]


class Assembly(Struct, frozen=True):
    """What a server is made of, before its database."""

    plugins: Plugins
    auth: SelectedAuthMode


def assemble(settings: ServerSettings) -> Assembly:
    """Boots the plugins and chooses the auth mode.

    Raises PluginMissing where an option or the auth mode needs a plugin that is not in use here, and
    UsageError or PluginError for a plugin option that is not valid.
    """
    plugins = boot_plugins(settings)
    return Assembly(plugins, select_auth_mode(plugins, settings["auth"]))


def boot_plugins(
    settings: ServerSettings, *, without: Collection[str] = (), known: Sequence[PluginProblem] = ()
) -> Plugins:
    """Boots the plugins with the settings of this deployment."""
    tell_of_hanging_plugins(settings)
    plugins = load_plugins(settings["plugins"], check_route=check_route, without=without, known=known)
    for value in settings.of_plugins:
        plugins.require(value.plugin_id, value.place)
    given = [(value.plugin_id, value.settings) for value in settings.of_plugins]
    place = settings.given.get("plugin_option", "plugin_option")
    return parse_options(plugins, settings["plugin_option"], given, place)


def pipeline_settings(settings: ServerSettings) -> PipelineSettings:
    """The part of the settings that the pipeline needs."""
    limits = Limits(
        file_body=settings["max_body"],
        json_body=settings["max_json_body"],
        batch_operations=settings["max_batch"],
        body_timeout_s=float(settings["body_timeout"]),
    )
    return PipelineSettings(
        auth=settings["auth"],
        cors_origins=settings["cors_origins"],
        limits=limits,
        access_log=settings["access_log"],
        trusted_proxies=settings["trusted_proxies"],
        hsts_s=settings["hsts"],
    )


def make_application(settings: ServerSettings, lifetime: Lifetime) -> Application:
    """Returns an application whose service still has to open its database; errors as ``assemble``."""
    assembly = assemble(settings)
    pipeline = pipeline_settings(settings)
    service = Service(assembly.plugins, assembly.auth, pipeline.startup_wait_s)
    return create_service_app(service, pipeline, lifetime)


def opener_of(
    settings: ServerSettings, plugins: Plugins, auth: SelectedAuthMode, executor: Executor | None = None
) -> Callable[[Callable[[int, int], None]], Database]:
    """Returns what opens the database; a missing one is made with its first plugins, the auth mode's too."""

    def open_database(progress: Callable[[int, int], None]) -> Database:
        database = Database(
            settings["database"],
            progress=progress,
            max_tree_entries=settings["max_tree_entries"],
            backends=plugins.registries.storage_backends.values,
            executor=executor,
        )
        try:
            initialize(database, plugins, mode_of=auth.plugin_id)
        except BaseException:
            database.close()
            raise
        return database

    return open_database
