"""Wheels of svc, which the tests of strangers' installations share."""

from __future__ import annotations

import pytest

from .installation import Wheelhouse  # noqa: TID252


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    return Wheelhouse(tmp_path_factory.mktemp("wheels"))
