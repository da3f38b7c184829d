"""Whether the commands of plugins can be had: each is imported once, as its first call would do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from svc.findings import Finding
from svc_cli.lazy_command import LazyCommand, load_command

if TYPE_CHECKING:
    from svc.plugins import Plugins

__all__ = ["command_findings", "main"]

_NICENESS = 19
_DEPTH = 4


def command_findings(plugins: Plugins) -> Iterator[Finding]:
    """Yields a finding for each command that can't be imported. Imports all of them; blocks."""
    from svc.findings import describe_failure

    homes = [(plugin_id, one) for plugin_id, item in plugins.descriptors.items() for one in item.commands]
    for plugin_id, home in homes:
        try:
            _load(load_command(home.home), _DEPTH)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever foreign code raises, it is told
            yield Finding(
                "command.broken",
                plugin_id,
                f"A command of the plugin {plugin_id!r} can't be loaded.",
                "Mend the plugin, or install another version.",
                subject=home.name,
                detail=f"svc {home.name}: {describe_failure(error)}",
            )


def _load(command: click.Command, depth: int) -> None:
    if isinstance(command, LazyCommand):
        command = command.command
    if isinstance(command, click.Group) and depth:
        for member in command.commands.values():
            _load(member, depth - 1)


def main() -> None:
    """Prints as JSON what is wrong with the plugins that SVC_PLUGINS allows, and with their commands.

    For a server, which asks a process of its own: its workers import none of this.
    """
    os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    # What plugins print when they are imported is not the answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    from svc.pipeline import check_route
    from svc.plugins import load_plugins, parse_allowed, plugin_findings

    plugins = load_plugins(parse_allowed(os.environ.get("SVC_PLUGINS")), check_route=check_route)
    found = [*plugin_findings(plugins), *command_findings(plugins)]
    with os.fdopen(answer, "wb") as stream:
        stream.write(msgspec.json.encode(found))
    sys.stdout.flush()
    os._exit(0)
