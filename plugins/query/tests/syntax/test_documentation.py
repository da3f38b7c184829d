"""docs/query-language.md against the parser: every condition, every sample, the error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from svc_query.syntax import FilterSyntaxError, parse_filter
from svc_query.syntax.words import SIGNS, WORDS

from query_model.filter_text import filter_text

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "query-language.md").read_text(encoding="utf-8")
CONDITIONS = re.findall(r"^\| `([^`]+)` \|.*\| `(\{.*\})` \|$", PAGE, re.MULTILINE)
SAMPLES = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def operators(where: Any) -> set[str]:
    if "op" in where:
        return {where["op"]}
    parts = where.get("and") or where.get("or") or [where["not"]]
    return set().union(*map(operators, parts))


@pytest.mark.parametrize(("text", "shown"), CONDITIONS)
def test_a_condition_means_the_json_beside_it(text: str, shown: str) -> None:
    assert parse_filter(text) == json.loads(shown)
    assert parse_filter(filter_text(json.loads(shown))) == json.loads(shown)


def test_every_operator_of_the_language_is_there() -> None:
    documented = set().union(*(operators(json.loads(shown)) for _, shown in CONDITIONS))
    assert documented == {*SIGNS.values(), *WORDS.values()}


def test_every_sample_is_read() -> None:
    lines = [line for sample in SAMPLES[:-1] for line in sample.splitlines()]
    assert len(lines) >= 4
    for line in lines:
        assert parse_filter(line)
    inline = re.findall(r"`((?:text|year|title) (?:not|search|similar) [^`]+)`", PAGE)
    assert len(inline) >= 3
    for text in inline:
        assert parse_filter(text)


def test_the_error_is_the_one_that_is_shown() -> None:
    shown = SAMPLES[-1].rstrip("\n").removeprefix("svc: ")
    with pytest.raises(FilterSyntaxError) as raised:
        parse_filter(shown.split("\n")[1].strip())
    assert raised.value.pointed() == shown
