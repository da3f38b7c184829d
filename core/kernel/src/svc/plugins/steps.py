"""Which code of plugins this process is in: so that a plugin that does not return can be named by others.

Whoever calls what may hang (an import, a hook, a health check) does it in a ``plugin_step``. Nothing here
takes a lock: whoever looks may be another thread, while the first hangs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from svc.findings import Finding

__all__ = ["HANGS_AFTER_SECONDS", "hanging_steps", "plugin_step"]

HANGS_AFTER_SECONDS = 1.5
"""How long a step may wait for something."""

_LONG_SECONDS = 10.0
"""How long a step may compute."""


class _Step(Struct, frozen=True):
    plugin_id: str
    what: str
    began: float
    began_ms: int
    processor: float


_steps: dict[object, _Step] = {}


@contextmanager
def plugin_step(plugin_id: str, what: str) -> Iterator[None]:
    """Notes that code of a plugin is at work in a block; ``what`` is a hook, an import, a check."""
    key = object()
    _steps[key] = _Step(plugin_id, what, time.monotonic(), time.time_ns() // 1_000_000, time.process_time())
    try:
        yield
    finally:
        _steps.pop(key, None)


def hanging_steps() -> tuple[Finding, ...]:
    """Returns a finding for each step that has waited for too long, or computed for very long."""
    now, processor = time.monotonic(), time.process_time()
    found = []
    for step in list(_steps.values()):
        seconds = now - step.began
        computes = processor - step.processor > seconds / 2
        if seconds > (_LONG_SECONDS if computes else HANGS_AFTER_SECONDS):
            found.append(
                Finding(
                    "plugin.hanging",
                    step.plugin_id,
                    f"Code of the plugin {step.plugin_id!r} does not return.",
                    "If it does not end by itself, leave the plugin out of the allowed ones, and start the "
                    "server anew.",
                    since_ms=step.began_ms,
                    subject=step.what,
                    detail=f"{step.what} has not returned yet.",
                )
            )
    return tuple(found)
