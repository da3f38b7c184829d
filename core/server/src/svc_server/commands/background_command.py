"""``svc background``."""

from __future__ import annotations

from collections.abc import Callable

from svc_server.commands.server_command import ServerCommand
from svc_server.options import ServerSettings

__all__ = ["background"]


def _background(resolve: Callable[[], ServerSettings]) -> int:
    """Is the background process of a database, or stands by until it can be, until it is stopped.

    For servers that run in a gunicorn of one's own with background=False, and for more than one candidate;
    'svc start' keeps one by itself. Options can also be given as environment variables SVC_<OPTION> or in
    the file that --config names, as those of 'svc start'.
    """
    from svc_server.background.process import Stop, allow_in_children, run_background
    from svc_server.logs import configure_logs

    settings = resolve()
    allow_in_children(settings)
    configure_logs(settings["log_format"])
    stop = Stop()
    stop.follow_signals()
    return run_background(settings, stop)


background = ServerCommand("background", _background, ("database", "plugins", "plugin_option", "log_format"))
