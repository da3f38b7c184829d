"""How much these tests do: ``SVC_TEST_CLUSTER_SCALE`` and ``SVC_TEST_CLUSTER_SEED``."""

from __future__ import annotations

from long_runs import Extent

__all__ = ["EXTENT", "SCALE", "SEED", "scaled"]

EXTENT = Extent("CLUSTER")
SCALE, SEED, scaled = EXTENT.scale, EXTENT.seed, EXTENT.scaled
