"""Fixtures of the tests of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.network import Network
from cluster.scale import EXTENT

HERE = Path(__file__).parent
LONG_SECONDS = 4000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a long run no test of these has the time limit of a short one."""
    EXTENT.lift_time_limits(items, HERE, LONG_SECONDS)


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    yield made
    made.close()
