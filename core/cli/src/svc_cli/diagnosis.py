"""The one list of what is wrong, as commands see it: what all processes have found, and what can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from svc.database import Database
from svc.findings import Finding, merge_findings
from svc.plugins import plugin_findings
from svc_cli.command_check import command_findings
from svc_cli.processes.diagnosis import storage_findings
from svc_cli.processes.registration import RegisteredProcess, published_lists
from svc_cli.processes.watch import background_findings

if TYPE_CHECKING:
    from svc.plugins import Plugins

__all__ = ["gather_findings"]


def gather_findings(
    database: Database,
    plugins: Plugins | None,
    processes: Sequence[RegisteredProcess],
    hanging: Sequence[Finding] = (),
) -> tuple[Finding, ...]:
    """Returns everything that is wrong with a database and with those who serve it; blocks for milliseconds.

    While processes serve it, they say what is wrong with its plugins, and what the caller sees of the
    installed plugins comes on top. Otherwise the caller alone looks at what is enabled. ``plugins`` is None
    where some were ``hanging``, which are named then.
    """
    lists = published_lists(database.state_directory)
    own = list(hanging)
    if plugins is not None:
        own.extend(plugin_findings(plugins, None if lists else database))
        if not any(item.kind == "worker" for item in processes):
            own.extend(command_findings(plugins))
    return merge_findings(
        database.findings(),
        storage_findings(database, serving=False),
        background_findings(database.place, processes),
        *(each.findings for each in lists),
        (msgspec.structs.replace(finding, process="command") for finding in own),
    )
