"""The index type in a real database, where files come and go."""

from __future__ import annotations

import pytest
from svc_index_fulltext.index_type import FulltextIndexType
from svc_index_fulltext.operator import SearchOperator
from svc_query.api import Leaf
from svc_query.testing.index_types import FIELD, IndexTypeContract

WORDS = ["war", "peace", "walking", "walked", "the fox"]


class TestFulltextInADatabase(IndexTypeContract):
    operator = SearchOperator()
    value_type = "text"

    @pytest.fixture(autouse=True)
    def few_interruptions(self, small_flushes, monkeypatch):
        """Each of them writes the files of a library, which takes its time."""
        monkeypatch.setattr("svc_testing.views.MAXIMUM_INTERRUPTIONS", 2)

    @pytest.fixture
    def extension(self):
        return FulltextIndexType()

    def make_value(self, random):
        return " ".join(random.choices(WORDS, k=random.randrange(4)))

    def make_leaf(self, random):
        return Leaf(FIELD, "search", random.choice(["war", "walk", "war peace", "fox OR war", "nowhere"]))
