"""The index type in a real database, where files come and go."""

from __future__ import annotations

import pytest
from svc_index_phonetic.index import PhoneticIndex
from svc_index_phonetic.operators import PhoneticOperator
from svc_query.api import Leaf
from svc_query.testing.index_types import FIELD, IndexTypeContract

NAMES = ["Schmidt", "Smith", "Meier", "Mayer", "Knight", "1878"]


class TestPhoneticInADatabase(IndexTypeContract):
    operator = PhoneticOperator()

    @pytest.fixture
    def extension(self):
        return PhoneticIndex()

    def make_value(self, random):
        return random.choices(NAMES, k=random.randrange(3))

    def make_leaf(self, random):
        return Leaf(FIELD, "phonetic", random.choice(["Smith", "Mayer", "Night", "Bach"]))
