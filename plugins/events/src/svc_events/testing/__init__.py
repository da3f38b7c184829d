"""What event types and event sinks must pass; imported by tests only."""

from __future__ import annotations

from svc_events.testing.contract import EventTypeContract
from svc_events.testing.sinks import EventSinkContract, Receiver

__all__ = ["EventSinkContract", "EventTypeContract", "Receiver"]
