"""What is delivered is what the model says."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from svc_events import pulses
from svc_events.sinks import courier, job
from svc_events_sse.heartbeat import Heartbeat

from events_model.machine import Deliveries
from versions_model.scale import scaled


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulses and pauses of milliseconds."""
    monkeypatch.setattr(pulses, "_LEAST_MS", 2)
    monkeypatch.setattr(Heartbeat, "interval_ms", lambda self, configuration: 2)
    monkeypatch.setattr(courier, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(courier, "LONGEST_PAUSE_S", 0.002)
    monkeypatch.setattr(courier, "_HELD_BACK_S", 0.01)
    monkeypatch.setattr(job, "_TICK_S", 0.02)


@pytest.mark.timeout(0)
def test_streams_and_webhooks_deliver_what_may_be_seen() -> None:
    run_state_machine_as_test(Deliveries, settings=settings(max_examples=scaled(10), stateful_step_count=40))
