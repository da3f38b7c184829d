"""What the plugin does when its use begins or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["svc_start"]


@hookimpl
def svc_start(context: PluginContext) -> None:
    """Makes the database a node, and says so to who tells of events."""
    from svc_events.api import name_node

    from svc_sync.exchange.records import ensure_node, node_id_of

    if not context.database.read_only:
        ensure_node(context.database)
        name_node(context.database, node_id_of)
