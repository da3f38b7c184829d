"""How long the load of these tests lasts: ``SVC_TEST_MONITORING_SCALE`` and ``SVC_TEST_MONITORING_SEED``."""

from __future__ import annotations

from long_runs import Extent

__all__ = ["EXTENT", "SCALE", "SEED", "scaled"]

EXTENT = Extent("MONITORING")
SCALE, SEED, scaled = EXTENT.scale, EXTENT.seed, EXTENT.scaled
