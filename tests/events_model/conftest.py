"""A long run has no time limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from versions_model.scale import EXTENT

HERE = Path(__file__).parent
LONG_SECONDS = 4000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a long run no test of these has the time limit of a short one."""
    EXTENT.lift_time_limits(items, HERE, LONG_SECONDS)
