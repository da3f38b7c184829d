"""The observer: it chooses the requests that are traced, and puts them into a queue."""

from __future__ import annotations

import random
import re
from weakref import WeakKeyDictionary

from svc.plugin import Database, FinishedRequest, PluginContext, RequestObserver
from svc_traces_otlp.configuration import TracesConfiguration
from svc_traces_otlp.sender import Sender

__all__ = ["OBSERVER", "TracesObserver"]

_SAMPLED = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f][13579bdf](-.*)?", re.ASCII)
_KNOWN = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?", re.ASCII
)


class TracesObserver(RequestObserver):
    """Has a sender for each database, from its first request in a process on: threads outlive no fork."""

    name = "traces.otlp"

    def __init__(self) -> None:
        self._senders: WeakKeyDictionary[Database, Sender] = WeakKeyDictionary()

    def finished(self, request: FinishedRequest, context: PluginContext) -> None:
        """Queues the request, if it is traced."""
        settings: TracesConfiguration = context.configuration or TracesConfiguration()
        if not _is_traced(request.trace_parent, settings.sample_ratio):
            return
        sender = self._senders.get(context.database)
        if sender is None:
            sender = self._senders[context.database] = Sender(settings, context.logger)
        sender.put(request)

    def stop(self, context: PluginContext) -> None:
        """Ends the sender of a database."""
        sender = self._senders.pop(context.database, None)
        if sender is not None:
            sender.stop()


def _is_traced(trace_parent: str | None, ratio: float) -> bool:
    """As whoever called decided; else by chance."""
    if trace_parent is not None and _KNOWN.fullmatch(trace_parent):
        return _SAMPLED.fullmatch(trace_parent) is not None
    return ratio == 1.0 or random.random() < ratio


OBSERVER = TracesObserver()
