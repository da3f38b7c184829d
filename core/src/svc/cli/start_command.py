"""``svc start``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from svc.server.options import OPTIONS, Option, resolve_settings

__all__ = ["option_of", "start"]


def _start(config: str | None, **given: Any) -> int:
    """Serves a database over HTTP until it is stopped (SIGTERM, Ctrl-C).

    Prints one line on standard output when it answers; the log goes to standard error. Every option can
    also be given as an environment variable SVC_<OPTION> or as a key of the file that --config names; the
    command line comes first, then the environment, then the file.
    """
    # Imported here: gunicorn is of no use to any other command.
    from svc.server.start import serve

    def resolve() -> Any:
        return resolve_settings(given, config=config)

    return serve(resolve(), resolve)


def _with_options(function: Callable[..., Any]) -> click.Command:
    for option in reversed(OPTIONS):
        function = option_of(option)(function)
    function = click.option(
        "--config", metavar="FILE", help="A TOML file with one key for each option. [env: SVC_CONFIG]"
    )(function)
    return click.command("start")(function)


def option_of(option: Option) -> Callable[[Any], Any]:
    """Returns the decorator that gives a command one of the server's options."""
    names = [f"--{option.name}", option.key]
    if option.short:
        names.insert(0, f"-{option.short}")
    notes = [f"env: {option.variable}"]
    if option.default not in (None, (), True):
        notes.append(f"default: {option.default}")
    if option.plugin:
        notes.append(f"needs plugin {option.plugin}")
    return click.option(
        *names,
        default=None,
        multiple=option.repeatable,
        metavar=option.metavar,
        help=f"{option.help} [{'; '.join(notes)}]",
    )


start = _with_options(_start)
