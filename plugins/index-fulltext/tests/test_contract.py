"""The index type and its operator, by the contracts of svc and of the driver."""

from __future__ import annotations

from typing import ClassVar

import pytest
from svc_index_fulltext.descriptor import PLUGIN
from svc_index_fulltext.index_type import FulltextIndexType
from svc_index_fulltext.operator import SearchOperator
from svc_query.api import QUERY_OPERATORS, Leaf
from svc_query.testing.library import LibraryIndexTypeContract

from svc_testing import ExtensionContract, PluginContract

WORDS = [f"{stem}{ending}" for stem in ("jump", "walk", "Ünter", "fox") for ending in ("", "s", "ing", "ed")]


def search(text: object) -> Leaf:
    return Leaf(field="text", op="search", value=text, value_type="text")


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestSearchOperator(ExtensionContract):
    plugin_id = PLUGIN.id
    family = QUERY_OPERATORS

    @pytest.fixture
    def extension(self):
        return SearchOperator()


class TestFulltext(LibraryIndexTypeContract):
    plugin_id = PLUGIN.id
    operator = SearchOperator()
    bad_options = (
        {"language": "klingon"}, {"language": 7}, {"tokenizer": "x"}, {"stop_words": "the"},
        {"stop_words": [1]}, {"stop_words": True}, {"stop_words": ["w"] * 2000},
    )  # fmt: skip
    bad_leaves = tuple(
        search(text) for text in (None, 7, [], "", " ", "-fox", '"fox', "(fox", "fox)", "OR", "fox OR")
    )
    tolerance = 0.05

    @pytest.fixture
    def extension(self):
        return FulltextIndexType()

    def make_values(self, random):
        return [
            " ".join(random.choices(WORDS, k=random.randrange(12))) for _ in range(random.randrange(1, 4))
        ]

    def make_leaf(self, random):
        one, two, three = random.choices(WORDS, k=3)
        forms = [
            one, f"{one} {two}", f"{one} OR {two}", f'"{one} {two}"', f"{one} -{two}", f"{one[:3]}*",
            f"({one} OR {two}) {three}", f'{one[:4]}* -"{two} {three}"', f"{one}-{two}",
        ]  # fmt: skip
        return search(random.choice(forms))


class TestStems(TestFulltext):
    options: ClassVar = {"language": "english", "stop_words": ["walk"]}


class TestPairsOfCharacters(TestFulltext):
    options: ClassVar = {"tokenizer": "cjk"}

    def make_values(self, random):
        text = "".join(random.choices("東京都大阪 府ab", k=random.randrange(20)))
        return [text, *super().make_values(random)]

    def make_leaf(self, random):
        if random.random() < 0.3:
            return super().make_leaf(random)
        text = "".join(random.choices("東京都大阪", k=random.randrange(1, 4)))
        return search(random.choice([text, f"{text}*", f'"{text}"', f"a{text}", f"{text} 京 OR 都b"]))
