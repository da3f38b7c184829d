"""The page of the plugin says what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_index_phonetic.coding import ALGORITHMS
from svc_index_phonetic.operators import BOTH_SECONDARY, MAXIMUM_WORDS, ONE_SECONDARY, PhoneticOperator

PAGE = (Path(__file__).parents[3] / "docs" / "plugins" / "index-phonetic.md").read_text(encoding="utf-8")


def test_every_operator_and_option_is_described():
    for operator in (PhoneticOperator,):
        for name in (operator.name, *operator.options):
            assert f"`{name}`" in PAGE


def test_limits_are_those_of_the_code():
    assert [name for name in ALGORITHMS if f"| `{name}`" not in PAGE] == []
    assert f"1 to {MAXIMUM_WORDS} words" in PAGE
    assert f"| {ONE_SECONDARY} |" in PAGE
    assert f"| {BOTH_SECONDARY} |" in PAGE
