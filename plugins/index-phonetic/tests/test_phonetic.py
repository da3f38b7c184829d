"""The plugin by its contracts, and its operator beside the libraries that know how words sound."""

from __future__ import annotations

import jellyfish
import pytest
from doublemetaphone import doublemetaphone
from hypothesis import given
from hypothesis import strategies as st
from svc_index_phonetic.coding import ALGORITHMS
from svc_index_phonetic.index import PhoneticIndex
from svc_index_phonetic.operators import PhoneticOperator
from svc_query.api import Leaf
from svc_query.testing.terms import TermIndexTypeContract, any_values, texts

from svc_testing import PluginContract

NAMES = [
    "Schmidt",
    "Smith",
    "Smyth",
    "Meier",
    "Mayer",
    "Tolstoi",
    "Tolstoy",
    "Robert",
    "Rupert",
    "Knight",
    "Night",
    "Müller",
]


def compile_leaf(value, algorithm="double_metaphone"):
    leaf = Leaf("f", "phonetic", value, index_options={"phonetic": {"algorithm": algorithm}})
    return PhoneticOperator().compile(leaf)


class TestPhoneticPlugin(PluginContract):
    plugin_id = "index.phonetic"


class TestPhoneticIndex(TermIndexTypeContract):
    plugin_id = "index.phonetic"
    operators = (PhoneticOperator(),)
    entries = ({}, *({"algorithm": algorithm} for algorithm in ALGORITHMS))
    bad_entries = ({"algorithm": "cologne"}, {"algorithm": None}, {"algorithm": ["soundex"]})
    bad_leaves = tuple(
        Leaf("f", "phonetic", value) for value in (None, 5, ["a"], "", " - ", " ".join(map(str, range(33))))
    )

    @pytest.fixture
    def extension(self):
        return PhoneticIndex()

    def values(self):
        return st.one_of(st.lists(st.sampled_from(NAMES), max_size=3).map(" ".join), texts(), any_values())

    def leaves(self):
        names = st.lists(st.sampled_from([*NAMES, "42", "война"]), min_size=1, max_size=3).map(" ".join)
        return names.map(lambda text: Leaf("f", "phonetic", text))


@given(
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=10),
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=10),
)
def test_single_words_match_when_their_codes_do(left, right):
    soundex = compile_leaf(left, "soundex").test(right)
    assert (soundex is not None) == (jellyfish.soundex(left) == jellyfish.soundex(right))
    codes, others = ({code for code in doublemetaphone(word) if code} for word in (left, right))
    if codes and others:
        assert (compile_leaf(left).test(right) is not None) == bool(codes & others)


@pytest.mark.parametrize(
    ("algorithm", "query", "value", "score"),
    [
        ("soundex", "Robert", "Rupert", 1.0),
        ("soundex", "Robert", "Smith", None),
        ("metaphone", "Knight", "night", 1.0),
        ("double_metaphone", "Smith", "Smyth", 1.0),
        ("double_metaphone", "Smith", "Schmidt", 0.8),
        ("double_metaphone", "Tolstoi", "Leo TOLSTOY", 1.0),
        ("double_metaphone", "leo tolstoi", "Tolstoy, Leo", 1.0),
        ("double_metaphone", "leo tolstoi", "Tolstoy", None),
        ("double_metaphone", "Muller", "Müller", 1.0),
        ("double_metaphone", "война", "ВОЙНА", 1.0),
        ("double_metaphone", "война", "воина", None),
        ("double_metaphone", "42", "42", 1.0),
        ("double_metaphone", "42", "43", None),
        ("double_metaphone", "Smith", 42, None),
    ],
)
def test_what_sounds_alike(algorithm, query, value, score):
    assert compile_leaf(query, algorithm).test(value) == score


def test_where_a_text_sounds_like_it():
    assert compile_leaf("smith").matches("Mr. Smyth and Schmidt") == [(4, 9), (14, 21)]
