"""The driver's own operator keeps the contract of operators."""

from __future__ import annotations

import pytest
from svc_query.api import QueryOperator
from svc_query.built_in_operators import Exists
from svc_query.testing.operators import ODD_VALUES, QueryOperatorContract


class TestExists(QueryOperatorContract):
    plugin_id = "query"
    examples = (({"value": True}, ODD_VALUES, ()), ({}, ODD_VALUES, ()), ({"value": False}, (), ODD_VALUES))
    refused = ({"value": 1}, {"value": "yes"}, {"value": []})

    @pytest.fixture
    def extension(self) -> QueryOperator:
        return Exists()

    @pytest.fixture
    def driver_id(self) -> str:
        return "query"

    # The driver adds it itself: it is there exactly when the driver is.
    test_its_driver_finds_it_while_its_plugin_is_enabled = None  # type: ignore[assignment]
    test_it_rests_where_its_driver_is_not_installed = None  # type: ignore[assignment]
    test_it_rests_where_its_driver_is_not_allowed = None  # type: ignore[assignment]
