"""How much these tests do: ``SVC_TEST_QUERY_SCALE`` and ``SVC_TEST_QUERY_SEED``."""

from __future__ import annotations

from long_runs import Extent

__all__ = ["EXTENT", "SEED", "scaled"]

EXTENT = Extent("QUERY")
SEED, scaled = EXTENT.seed, EXTENT.scaled
