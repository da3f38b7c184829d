"""The plugins that the fixtures of svc use in these tests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from svc_hello.descriptor import PLUGIN


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """Ours alone; the auth mode of the servers comes with the fixtures."""
    return (PLUGIN.id,)
