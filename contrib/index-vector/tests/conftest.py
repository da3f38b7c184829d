"""The plugins that the fixtures of svc use."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from svc_index_vector.descriptor import PLUGIN


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """Ours, and the one that it extends."""
    return ("query", PLUGIN.id)
