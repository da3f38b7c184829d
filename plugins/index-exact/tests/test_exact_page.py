"""The page of the plugin says what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_index_exact.operators import MAXIMUM_VALUES, OPERATORS

PAGE = (Path(__file__).parents[3] / "docs" / "plugins" / "index-exact.md").read_text(encoding="utf-8")


def test_every_operator_and_option_is_described():
    for operator in OPERATORS:
        for name in (operator.name, *operator.options):
            assert f"`{name}`" in PAGE


def test_limits_are_those_of_the_code():
    assert "`in`" in PAGE
    assert f"array of up to {MAXIMUM_VALUES:,} " in PAGE
