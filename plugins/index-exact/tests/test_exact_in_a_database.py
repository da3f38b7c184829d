"""The index type in a real database, where files come and go."""

from __future__ import annotations

import pytest
from svc_index_exact.index import ExactIndex
from svc_index_exact.operators import EqualOperator
from svc_query.api import Leaf
from svc_query.testing.index_types import FIELD, IndexTypeContract

VALUES = ["a", "ab", 3, 3.0, True, None, ""]


class TestExactInADatabase(IndexTypeContract):
    operator = EqualOperator()

    @pytest.fixture
    def extension(self):
        return ExactIndex()

    def make_value(self, random):
        return random.choices(VALUES, k=random.randrange(3))

    def make_leaf(self, random):
        return Leaf(FIELD, "eq", random.choice(VALUES))
