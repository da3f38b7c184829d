"""How long the crash tests run, and from which seed: two environment variables.

``SVC_TEST_CRASH_SCALE`` multiplies the number of crashes (1 by default; ``tox -e crash`` sets more);
``SVC_TEST_CRASH_SEED`` repeats what a failure printed.
"""

from __future__ import annotations

import os

__all__ = ["SCALE", "SEED", "scaled"]

SCALE = float(os.environ.get("SVC_TEST_CRASH_SCALE", "1"))
SEED = int(os.environ.get("SVC_TEST_CRASH_SEED", "1"))


def scaled(count: int, *, most: int | None = None) -> int:
    """Returns how many of something to do: ``count`` in a short run, at least one."""
    number = max(1, round(count * SCALE))
    return number if most is None else min(number, most)
