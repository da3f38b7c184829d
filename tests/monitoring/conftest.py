"""Time limits of the tests that Prometheus takes part in."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitoring.scale import EXTENT

HERE = Path(__file__).parent
LONG_SECONDS = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a long run no test of these has the time limit of a short one."""
    EXTENT.lift_time_limits(items, HERE, LONG_SECONDS)
