"""How much the model is tried: ``SVC_TEST_MODEL_SCALE`` multiplies the number of runs (1 by default)."""

from __future__ import annotations

import os

__all__ = ["scaled"]

SCALE = float(os.environ.get("SVC_TEST_MODEL_SCALE", "1"))


def scaled(count: int) -> int:
    """Returns how many runs to make: ``count`` in a short run, at least one."""
    return max(1, round(count * SCALE))
