"""The server: svc under gunicorn, by ``svc start`` or inside a gunicorn of one's own.

Each worker process opens the database after its fork; one line says when the first of them answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svc_server.deferred import DeferredApplication

__all__ = ["create_app"]


def create_app(
    path: str | None = None, plugins: str | None = None, auth: str | None = None, **options: Any
) -> DeferredApplication:
    """Returns the WSGI application for a gunicorn of one's own.

    ``gunicorn -k gevent 'svc_server:create_app("x.svcdb")'``; the worker classes ``gevent``, ``gthread`` and
    ``sync`` are fit, with any number of workers. The database is opened in each worker, at its first
    request; a missing one is made.

    Args:
        path: the database; else ``SVC_DATABASE``, else ``./data.svcdb``.
        plugins: ids of the allowed plugins, joined by commas; else ``SVC_PLUGINS`` (which gunicorn's setting
            ``raw_env`` can hold), else all that are installed.
        auth: the auth mode; else ``SVC_AUTH``, else ``self-contained``.
        options: further options of ``svc start`` that concern the application, with underscores: see
            the table in the documentation. Each also has its environment variable.

    Raises:
        UsageError: an option is unknown or malformed.
        PluginMissing: the auth mode is not at hand.
    """
    from svc_server.deferred import defer_application

    given = {"database": path, "plugins": plugins, "auth": auth, **options}
    return defer_application({name: value for name, value in given.items() if value is not None})
