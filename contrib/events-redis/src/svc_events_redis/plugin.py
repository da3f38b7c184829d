"""The hooks of the plugin: its sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventSink

    from svc.plugin import NamedRegistry


@hookimpl
def svc_register_event_sinks(event_sinks: NamedRegistry[EventSink]) -> None:
    """Adds the sink."""
    from svc_events_redis.sink import RedisSink

    event_sinks.add(RedisSink())
