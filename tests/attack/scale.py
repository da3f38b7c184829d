"""How much these tests do: ``SVC_TEST_ATTACK_SCALE`` and ``SVC_TEST_ATTACK_SEED``."""

from __future__ import annotations

from long_runs import Extent

__all__ = ["EXTENT", "SCALE", "SEED", "scaled"]

EXTENT = Extent("ATTACK")
SCALE, SEED, scaled = EXTENT.scale, EXTENT.seed, EXTENT.scaled
