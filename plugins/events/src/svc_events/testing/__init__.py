"""What event types must pass; imported by tests only."""

from __future__ import annotations

from svc_events.testing.contract import EventTypeContract

__all__ = ["EventTypeContract"]
