"""Fixtures of the attacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from attack.scale import EXTENT
from attack.strangers import World, open_world
from long_runs import directory_in_memory

HERE = Path(__file__).parent
LONG_SECONDS = 7200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a long run no test of these has the time limit of a short one."""
    EXTENT.lift_time_limits(items, HERE, LONG_SECONDS)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: thousands of files are damaged, and synced for nothing."""
    with directory_in_memory(tmp_path, "svc-attack-") as directory:
        yield directory


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with users, keys and a link; at its end its log holds no secret and no failure of ours.

    One for each module: in a long run the soak lies between two of them, and tokens end in an hour.
    """
    world = open_world(tmp_path_factory.mktemp("world"))
    yield world
    log = world.server.log_text()
    world.server.close()
    assert [secret for secret in world.secrets if secret in log] == []
    assert "Traceback" not in log
