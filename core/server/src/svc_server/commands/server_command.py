"""How a command gets the options of the server, and those of the plugins that its arguments allow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import click

from svc.errors import UsageError
from svc_server.options import (
    OPTIONS,
    Option,
    ServerSettings,
    allowed_plugins,
    options_of_plugins,
    resolve_settings,
)

__all__ = ["ServerCommand"]

_ADDED = "svc.options-of-plugins"


class ServerCommand(click.Command):
    """A command with options of the server: those of ``keys``, or all.

    ``run`` is called with a function that gives the settings, again at each call; its docstring is the help.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Callable[[], ServerSettings]], int],
        keys: Collection[str] | None = None,
    ) -> None:
        self._options_of_plugins = functools.cache(options_of_plugins)
        params: list[click.Parameter] = [
            click.Option(
                ["--config"],
                metavar="FILE",
                help="A TOML file with one key for each option. [env: SVC_CONFIG]",
            ),
            *(_click_option(option) for option in OPTIONS if keys is None or option.key in keys),
        ]
        super().__init__(name, callback=self._callback, params=params, help=run.__doc__)
        self._run = run

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Looks for ``--plugins`` first: the plugins that may be used have options too."""
        early = click.Command(self.name, params=self.params, add_help_option=False)
        settings: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
        given = early.make_context(self.name, list(args), resilient_parsing=True, **settings).params
        config = given.pop("config", None)
        try:
            allowed = allowed_plugins(given, config=config)
        except UsageError:
            allowed = None  # the settings say it again
        ctx.meta[_ADDED] = [_click_option(option) for option in self._options_of_plugins(allowed)]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the server, and behind them those of plugins."""
        *params, help_option = super().get_params(ctx)
        return [*params, *ctx.meta.get(_ADDED, ()), help_option]

    def _callback(self, config: str | None, **options: Any) -> int:
        # Others are not named again: at a reload their plugins may be allowed no more.
        given = {key: value for key, value in options.items() if value not in (None, ())}
        return self._run(lambda: resolve_settings(given, config=config, options=self._options_of_plugins))


def _click_option(option: Option) -> click.Option:
    names = [f"--{option.name}", option.key]
    if option.short:
        names.insert(0, f"-{option.short}")
    notes = [f"env: {option.variable}"]
    if option.plugin:
        notes.insert(0, f"plugin {option.plugin}")
    if option.default not in (None, (), True):
        notes.append(f"default: {option.default}")
    return click.Option(
        names,
        default=None,
        multiple=option.repeatable,
        metavar=option.metavar,
        help=f"{option.help} [{'; '.join(notes)}]",
    )
