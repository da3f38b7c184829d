"""How many schedules are run: ``SVC_TEST_SYNC_SCALE`` and ``SVC_TEST_SYNC_SEED``."""

from __future__ import annotations

from long_runs import Extent

__all__ = ["EXTENT", "SCALE", "SEED", "scaled"]

EXTENT = Extent("SYNC")
SCALE, SEED, scaled = EXTENT.scale, EXTENT.seed, EXTENT.scaled
