"""Every hook of svc. A plugin implements those it needs, marked with ``@svc.hookimpl``.

Registration hooks are called once in every process, at boot, before any database is open: they add objects
to the registry of their family and do nothing else. Lifecycle hooks are called for each database in which
the plugin is enabled. No hook is called while a request is served.

An implementation may leave out arguments that it does not use; hooks gain arguments and never lose them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from svc.database import View
    from svc.log import StorageBackend
    from svc.plugins.context import PluginContext
    from svc.plugins.contracts import (
        AuthMode,
        ContentCheck,
        HealthCheck,
        JobRegistry,
        RequestObserver,
    )
    from svc.plugins.registry import NamedRegistry, RouteRegistry

__all__ = ["hookimpl", "hookspec"]

hookspec = pluggy.HookspecMarker("svc")
hookimpl = pluggy.HookimplMarker("svc")


@hookspec
def svc_register_routes(routes: RouteRegistry) -> None:
    """Adds HTTP routes: ``routes.add("/hello/{name}", HelloResource())``.

    Called at boot in the processes that serve or check routes. Every responder declares the operation and
    the path that it needs; one without a declaration disables the plugin. In a database where the plugin is
    not enabled, its routes answer 404.
    """


@hookspec
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds values of ``--auth``: ``auth_modes.add(MyMode())``.

    Called at boot. A mode is looked up by its name and its aliases, once, when the server starts; exactly one
    mode judges all requests, so that no order of plugins can matter.
    """


@hookspec
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds views over the commit feed: ``views.add(MyView())``.

    Called at boot. A view is fed the commits of every database in which the plugin is enabled, and keeps what
    it makes of them beside the database; it can be rebuilt from the log at any time.
    """


@hookspec
def svc_register_content_checks(content_checks: NamedRegistry[ContentCheck]) -> None:
    """Adds checks of files before they are stored: ``content_checks.add(MyCheck())``.

    Called at boot. A check is asked before each commit, in every process that writes, that puts a file at a
    path of its kind in a database where the plugin is enabled.
    """


@hookspec
def svc_register_storage_backends(storage_backends: NamedRegistry[StorageBackend]) -> None:
    """Adds media that a log can live on, by URL scheme: ``storage_backends.add(MyBackend())``.

    Called at boot, before the database is opened. Backends are not enabled for a database, since they are
    what it is read with: being allowed is enough.
    """


@hookspec
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds checks that ``GET /system/health`` asks: ``health_checks.add(MyCheck())``.

    Called at boot.
    """


@hookspec
def svc_register_request_observers(request_observers: NamedRegistry[RequestObserver]) -> None:
    """Adds observers that are told of each request once it is answered: ``request_observers.add(Mine())``.

    Called at boot.
    """


@hookspec
def svc_enable(context: PluginContext) -> None:
    """The plugin is about to be enabled in a database, or its settings are about to change.

    Called once, by the process in which it happens (a command, or a worker that was asked over HTTP), before
    the record is committed; ``context.configuration`` holds the new settings. It may write to the database
    and may block. An exception keeps the plugin as it was and is reported to whoever asked. Work that it does
    is work that can be done twice: the commit that follows may still fail.
    """


@hookspec
def svc_disable(context: PluginContext) -> None:
    """The plugin is about to be disabled in a database.

    Called once, by the process in which it happens, before the record is removed. It may block. An
    exception is logged and does not keep the plugin enabled: a broken one must be possible to disable.
    """


@hookspec
def svc_start(context: PluginContext) -> None:
    """A process that serves the database begins to use the plugin.

    Called in every worker and in the background process, after fork, with the database open; and in a running
    process when the plugin is enabled, or its settings change, and its descriptor allows ``reload``. It may
    block for a moment. An exception disables the plugin in that process and is reported; nothing else stops.
    """


@hookspec
def svc_background(context: PluginContext, jobs: JobRegistry) -> None:
    """Adds periodic work: ``jobs.add(MyJob())``.

    Called in the background process only, after ``svc_start``, each time that it begins to use the plugin.
    An exception leaves the plugin without its jobs, and is shown by ``svc status``.
    """


@hookspec
def svc_stop(context: PluginContext) -> None:
    """A process that serves the database ends its use of the plugin.

    Called once for each ``svc_start`` that returned: at a graceful shutdown, and when the plugin is
    disabled or its settings change. It ends threads and connections within a second. An exception is logged.
    """
