"""The index type in a real database, where files come and go."""

from __future__ import annotations

import pytest
from svc_index_trigram.index import TrigramIndex
from svc_index_trigram.operators import ContainsOperator
from svc_query.api import Leaf
from svc_query.testing.index_types import FIELD, IndexTypeContract

WORDS = ["war", "peace", "War and Peace", "seagull", "x"]


class TestTrigramInADatabase(IndexTypeContract):
    operator = ContainsOperator()

    @pytest.fixture
    def extension(self):
        return TrigramIndex()

    def make_value(self, random):
        return random.choices(WORDS, k=random.randrange(3))

    def make_leaf(self, random):
        return Leaf(FIELD, "contains", random.choice(["war", "ea", "gul", "nowhere", "and p"]))
