"""The plugin by its contracts, and its operators beside definitions of their own."""

from __future__ import annotations

from collections import Counter
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap
from svc_index_trigram.counting import at_least
from svc_index_trigram.folding import fold, fold_with_places, words_of
from svc_index_trigram.index import TrigramIndex
from svc_index_trigram.operators import OPERATORS
from svc_index_trigram.predicates import JaroWinklerSimilarity
from svc_query.api import Leaf
from svc_query.testing.terms import TermIndexTypeContract, any_values, texts

from svc_testing import PluginContract

BY_NAME = {operator.name: operator() for operator in OPERATORS}


def compile_leaf(op, value, **options):
    return BY_NAME[op].compile(Leaf("f", op, value, options))


def optimal_string_alignment(left, right):
    """The textbook's table."""
    rows = [list(range(len(right) + 1))]
    for i, a in enumerate(left, 1):
        rows.append([i])
        for j, b in enumerate(right, 1):
            best = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, rows[i - 2][j - 2] + 1)
            rows[i].append(best)
    return rows[-1][-1]


class TestTrigramPlugin(PluginContract):
    plugin_id = "index.trigram"


class TestTrigramIndex(TermIndexTypeContract):
    plugin_id = "index.trigram"
    operators = tuple(BY_NAME.values())
    bad_leaves = (
        *(Leaf("f", op, value) for op in BY_NAME for value in (None, 5, True, ["a"], "x" * 10_001)),
        *(Leaf("f", "similar", "a", {"threshold": bad}) for bad in (-0.1, 1.1, True, "0.3", float("nan"))),
        *(Leaf("f", "fuzzy", "a", {"fuzziness": bad}) for bad in (-1, 11, 1.5, True, "some", None)),
        Leaf("f", "similar", ""),
        Leaf("f", "similar", "x" * 1_001),
        Leaf("f", "fuzzy", ""),
        Leaf("f", "fuzzy", " ... "),
        Leaf("f", "fuzzy", "w " * 33),
        Leaf("f", "fuzzy", "a", {"algorithm": "soundex"}),
        Leaf("f", "fuzzy", "a", {"threshold": 0.5}),
        Leaf("f", "fuzzy", "a", {"algorithm": "jaro_winkler", "fuzziness": 1}),
    )

    @pytest.fixture
    def extension(self):
        return TrigramIndex()

    def values(self):
        return st.one_of(texts(), texts(), any_values())

    def leaves(self):
        words = texts().filter(lambda text: words_of(fold(text)))
        limits = st.one_of(st.sampled_from([0, 0.3, 1]), st.floats(0, 1))
        needles = st.one_of(texts(), st.sampled_from(["o", "ol", "ст", "ß", "ss", "和", "\u0301", "i", "É"]))
        return st.one_of(
            needles.map(lambda text: Leaf("f", "contains", text)),
            st.builds(
                lambda text, limit: Leaf("f", "similar", text, {"threshold": limit}),
                texts().filter(bool),
                limits,
            ),
            st.builds(
                lambda text, limit: Leaf("f", "similar", text * 9, {"threshold": limit}),
                texts().filter(lambda text: len(text) > 8),
                limits,
            ),
            st.builds(
                lambda text, most: Leaf("f", "fuzzy", text, {"fuzziness": most}),
                words,
                st.one_of(st.just("auto"), st.integers(0, 10)),
            ),
            st.builds(
                lambda text, limit: Leaf(
                    "f", "fuzzy", text, {"algorithm": "jaro_winkler", "threshold": limit}
                ),
                words,
                limits,
            ),
        )


@given(texts(), texts())
def test_contains_is_what_it_says(text, needle):
    def plain(text):
        return normalize("NFC", normalize("NFC", text).casefold())

    predicate = compile_leaf("contains", needle)
    assert (predicate.test(text) is not None) == (plain(needle) in plain(text))
    for start, end in predicate.matches(text):
        assert plain(needle) in plain(text[start:end])


@given(st.text("abcäß", max_size=8), st.text("abcäß", max_size=8), st.integers(0, 3))
def test_edits_are_counted_as_the_textbook_does(left, right, most):
    if not (fold(left) and fold(right)):
        return
    found = compile_leaf("fuzzy", left, fuzziness=most).test(right)
    edits = optimal_string_alignment(fold(left), fold(right))
    score = 1 - edits / max(len(fold(left)), len(fold(right)))
    assert found == (pytest.approx(score) if edits <= most and score > 0 else None)


@given(st.lists(st.sets(st.integers(0, 30)), min_size=1, max_size=12), st.integers(1, 12))
def test_members_of_so_many_bitmaps(sets, least):
    counts = Counter(member for members in sets for member in members)
    expected = {member for member, count in counts.items() if count >= least}
    assert set(at_least(least, [BitMap(members) for members in sets])) == expected


@pytest.mark.parametrize(
    ("word", "others", "matching"),
    [
        ("ab", ["ab", "ac", "abc"], ["ab"]),
        ("abc", ["abc", "abd", "acb", "ab", "xyz", "abcde"], ["abc", "abd", "acb", "ab"]),
        (
            "tolstoi",
            ["tolstoy", "Tolstoj", "tolsoti", "tolsty", "tolstxyz"],
            ["tolstoy", "Tolstoj", "tolsoti", "tolsty"],
        ),
    ],
)
def test_auto_allows_edits_by_length(word, others, matching):
    predicate = compile_leaf("fuzzy", word)
    assert [other for other in others if predicate.test(other)] == matching


def test_fuzzy_finds_words_in_any_order():
    predicate = compile_leaf("fuzzy", "peace wra", fuzziness=1)
    assert predicate.test("War and Peace") == pytest.approx((1 + 2 / 3) / 2)
    assert predicate.test("War") is None
    assert predicate.matches("War and Peace") == [(0, 3), (8, 13)]


def test_jaro_winkler_has_a_threshold():
    near = compile_leaf("fuzzy", "martha", algorithm="jaro_winkler")
    assert near.test("marhta") == pytest.approx(0.9611, abs=1e-4)
    assert compile_leaf("fuzzy", "martha", algorithm="jaro_winkler", threshold=0.97).test("marhta") is None


def test_jaro_winkler_offers_words_that_are_just_near_enough():
    predicate = compile_leaf("fuzzy", "rsaenra", algorithm="jaro_winkler", threshold=0.85)
    assert isinstance(predicate, JaroWinklerSimilarity)
    assert predicate.test("rsasnarii") == 0.85
    assert predicate.near("rsaenra", ["rsasnarii", "xyz"]) == ["rsasnarii"]


def test_similar_counts_triples_of_both_over_those_of_either():
    # Of the seven triples of each, five are shared: ^to tol ols lst sto.
    assert compile_leaf("similar", "tolstoi").test("TOLSTOY") == pytest.approx(5 / 9)
    assert compile_leaf("similar", "tolstoi", threshold=0.6).test("TOLSTOY") is None
    assert compile_leaf("similar", "tolstoi", threshold=0).test("xyz") is None
    assert compile_leaf("similar", "tolstoi", threshold=1).test("Tolstoi") == 1.0
    assert compile_leaf("similar", "tolstoi").matches("tolstoy") == [(0, 7)]


def test_places_are_those_of_the_text_before_folding():
    assert compile_leaf("contains", "STRASSE").matches("Die Straße, die strasse") == [(4, 10), (16, 23)]
    assert compile_leaf("contains", "é").matches("cafe\u0301!") == [(3, 5)]
    assert compile_leaf("contains", "s").matches("aß") == [(1, 2)]
    assert compile_leaf("contains", "").matches("abc") == []
    assert compile_leaf("contains", "").test("abc") == 1.0


@given(texts())
def test_places_cover_the_text(text):
    found = fold_with_places(text)
    if found is not None:
        folded, places = found
        assert folded == fold(text)
        assert len(places) == len(folded) + 1
        assert places == sorted(places)
        assert places[-1] == len(text)
