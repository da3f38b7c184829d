"""The hook of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventSink

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_event_sinks"]


@hookimpl
def svc_register_event_sinks(event_sinks: NamedRegistry[EventSink]) -> None:
    """Adds the sink."""
    from svc_hello.sink import PostingSink

    event_sinks.add(PostingSink())
