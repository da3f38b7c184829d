"""The sink: one destination, the URL of the settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

from svc_events.api import DeliveryFailed, Destination, EventSink, FeedEvent

from svc_hello.descriptor import HelloSettings

if TYPE_CHECKING:
    from svc.plugin import PluginContext

__all__ = ["PostingSink"]

_SECONDS = 10.0


class PostingSink(EventSink):
    """Posts each event as JSON. What the receiver did not take comes again, later."""

    name = "hello"

    def destinations(self, context: PluginContext) -> Iterable[Destination]:
        """The URL, once there is one."""
        return [Destination(id="url")] if _url(context) else []

    def deliver(self, destination: Destination, events: Sequence[FeedEvent], context: PluginContext) -> None:
        """Posts events in their order."""
        for number, found in enumerate(events):
            request = Request(_url(context), found.json, {"Content-Type": "application/json"})
            try:
                with urlopen(request, timeout=_SECONDS):
                    pass
            except OSError as error:
                message = f"The receiver did not take it ({type(error).__name__})."
                raise DeliveryFailed(message, delivered=number) from error


def _url(context: PluginContext) -> str:
    return (context.configuration or HelloSettings()).url
