"""The heartbeat: what time it is for a server, every 15 seconds."""

from __future__ import annotations

import time
from typing import Any

from svc_events.api import Pulse, node_id_of

from svc.plugin import PluginContext

__all__ = ["Heartbeat"]


class Heartbeat(Pulse):
    """Everybody's who listens; its id says how far the stream has read."""

    name = "heartbeat"
    seen_by = "everyone"

    def payload(self, context: PluginContext, due_ms: int) -> dict[str, Any]:
        """Says when it was due, and when it was made."""
        return {
            "intent_time": due_ms,
            "construct_time": time.time_ns() // 1_000_000,
            "node_id": node_id_of(context.database),
        }
