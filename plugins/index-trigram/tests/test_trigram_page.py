"""The page of the plugin says what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_index_trigram.folding import MAXIMUM_TRIPLES
from svc_index_trigram.operators import (
    DEFAULT_JARO_WINKLER,
    DEFAULT_SIMILARITY,
    MAXIMUM_EDITS,
    MAXIMUM_SIMILAR,
    MAXIMUM_WORDS,
    OPERATORS,
)
from svc_index_trigram.predicates import COUNTED, MAXIMUM_RANGE

PAGE = (Path(__file__).parents[3] / "docs" / "plugins" / "index-trigram.md").read_text(encoding="utf-8")


def test_every_operator_and_option_is_described():
    for operator in OPERATORS:
        for name in (operator.name, *operator.options):
            assert f"`{name}`" in PAGE


def test_limits_are_those_of_the_code():
    assert f"at most {MAXIMUM_TRIPLES + 1} of them" in PAGE
    assert f"more than {MAXIMUM_RANGE:,}\n" in PAGE
    assert f"up to {COUNTED} triples exactly" in PAGE
    assert f"0 to 1, {DEFAULT_SIMILARITY} by default" in PAGE
    assert f"0 to 1, {DEFAULT_JARO_WINKLER} by default" in PAGE
    assert f"0 to {MAXIMUM_EDITS}, or `auto`" in PAGE
    assert f"`value` has 1 to {MAXIMUM_WORDS} words" in PAGE
    assert f"1 to {MAXIMUM_SIMILAR:,} characters" in PAGE
