"""Values that a shell completes: paths, snapshots, users and the like, as plugins list them.

What a parameter takes is known by its name: ``--fork`` takes a fork, PATH a path, and NAME of
``svc group show`` a group. Nothing is completed after a second, or where anything fails.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from pkgutil import resolve_name
from typing import Any

import click
from click.shell_completion import CompletionItem

from svc_cli.lazy_command import LazyCommand
from svc_cli.source import Source

__all__ = ["complete_values", "values_of"]

MOST_VALUES = 200
SECONDS = 1.0

_ALIASES = {"source": "path", "destination": "path", "plugin_id": "plugin", "as_user": "user"}
_MAKING = ("add", "create")
"""Commands whose NAME is a new one."""


class _Completed(click.ParamType[Any]):
    """The type of a parameter, whose values are completed by what the parameter is called."""

    name = "text"

    def __init__(self, inner: click.ParamType[Any]) -> None:
        self._inner = inner

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As the type itself does."""
        return self._inner.convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the values that begin as what was typed."""
        return [CompletionItem(value) for value in values_of(ctx, param, incomplete)]


def complete_values(command: click.Command) -> click.Command:
    """Lets the parameters of a command, and of those below it, be completed; returns the command."""
    command = command.command if isinstance(command, LazyCommand) else command
    if isinstance(command, click.Group):
        for below in command.commands.values():
            complete_values(below)
    for parameter in command.params:
        # Others, as those of choices and of files on the disk, complete by themselves.
        if type(parameter.type) is type(click.STRING):
            parameter.type = _Completed(parameter.type)
    return command


def values_of(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Returns the values of a parameter that begin as what was typed; none after a second. Never raises."""
    values: list[str] = []

    def ask() -> None:
        try:
            listed = _listed(ctx, param, incomplete)
            values.extend(islice((value for value in listed if value.startswith(incomplete)), MOST_VALUES))
        except Exception:  # noqa: BLE001 - whoever types has not asked anything yet
            return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    return list(values)


def _listed(ctx: click.Context, param: click.Parameter, incomplete: str) -> Iterator[str]:
    from svc_cli.opening import boot_commands, usable_descriptors

    homes = {one.kind: one.home for descriptor in usable_descriptors() for one in descriptor.completions}
    for kind in _kinds(ctx, param):
        if kind == "plugin":
            yield from sorted(boot_commands().installed)
            return
        if kind in homes:
            yield from resolve_name(homes[kind])(_source(ctx), incomplete)
            return


def _kinds(ctx: click.Context, param: click.Parameter) -> Iterator[str]:
    """Yields what a parameter may take, the most certain first."""
    name = param.name or ""
    for text in (name, name.removesuffix("s")):
        yield _ALIASES.get(text, text)
    yield (param.metavar or "").strip("[].").lower()
    if name == "name" and ctx.parent is not None and ctx.info_name not in _MAKING:
        yield ctx.parent.info_name or ""


def _source(ctx: click.Context) -> Source:
    given = ctx.params
    database = given.get("url") or given.get("database") or Source().database
    return Source(database, given.get("token"), given.get("tls_ca"))
