"""``svc background``."""

from __future__ import annotations

from typing import Any

import click

from svc.cli.start_command import option_of
from svc.server.options import OPTIONS, resolve_settings

__all__ = ["background"]

_KEYS = ("database", "plugins", "plugin_option", "log_format")


def _background(config: str | None, **given: Any) -> int:
    """Is the background process of a database, or stands by until it can be, until it is stopped.

    For servers that run in a gunicorn of one's own with background=False, and for more than one candidate;
    'svc start' keeps one by itself. Options can also be given as environment variables SVC_<OPTION> or in
    the file that --config names, as those of 'svc start'.
    """
    from svc.server.background.process import Stop, run_background
    from svc.server.logs import configure_logs

    settings = resolve_settings(given, config=config)
    configure_logs(settings["log_format"])
    stop = Stop()
    stop.follow_signals()
    return run_background(settings, stop)


def _command() -> click.Command:
    function: Any = _background
    chosen = [option for option in OPTIONS if option.key in _KEYS or option.plugin is not None]
    for option in reversed(chosen):
        function = option_of(option)(function)
    function = click.option(
        "--config", metavar="FILE", help="A TOML file with one key for each option. [env: SVC_CONFIG]"
    )(function)
    return click.command("background")(function)


background = _command()
