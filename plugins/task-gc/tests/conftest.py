"""What the kit's fixtures load."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return ("task.gc", "tasks", "versions")
