"""How much these tests do: ``SVC_TEST_AUTHORIZATION_SCALE`` and ``SVC_TEST_AUTHORIZATION_SEED``."""

from __future__ import annotations

from long_runs import Extent

__all__ = ["EXTENT", "SEED", "scaled"]

EXTENT = Extent("AUTHORIZATION")
SEED, scaled = EXTENT.seed, EXTENT.scaled
