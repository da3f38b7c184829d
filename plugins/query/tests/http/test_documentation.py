"""The page of the routes says what the code does, and its samples work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from svc_query.configuration import QueryConfiguration
from svc_query.models import AggregateBody, OrderBody, QueryBody, RebuildBody, SearchBody

from svc.plugins import Plugins
from svc_testing import PluginContract

PAGE = (Path(__file__).parents[4] / "docs" / "http" / "query.md").read_text(encoding="utf-8")


class TestQueryPlugin(PluginContract):
    plugin_id = "query"


def test_every_route_and_method_has_its_row(plugins: Plugins) -> None:
    rows = set(re.findall(r"^\| `(\w+ /[^`]+)` \|", PAGE, re.MULTILINE))
    routes = {
        f"{method} {route.value.template}"
        for route in plugins.registries.routes.of_plugin("query")
        for method in route.value.methods
        if method not in ("HEAD", "OPTIONS")
    }
    assert rows == routes


@pytest.mark.parametrize("form", [QueryBody, SearchBody, RebuildBody, OrderBody, AggregateBody])
def test_every_member_of_a_body_is_described(form: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(form):
        name = field.encode_name
        assert f"`{name}`" in PAGE or f'"{name}"' in PAGE, name


def test_every_operator_has_its_row(http: Any) -> None:
    table = PAGE[PAGE.index("| Operator |") : PAGE.index("Other plugins may add operators")]
    rows = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    error = http.refused({"field": "@path", "op": "nothing", "value": 1})
    assert described == set(error["operators"])


def test_figures_are_those_of_the_settings() -> None:
    settings = QueryConfiguration()
    for shown, value in (
        ("`wait_seconds` (5)", settings.wait_seconds),
        ("`query_seconds` (30)", settings.query_seconds),
        ("up to 100,000 files (`scan_entries`)", settings.scan_entries),
        ("1 to 1,000; 20 without it", settings.default_limit),
    ):
        assert shown in PAGE
        assert f"{int(value):,}" in shown


def samples(begin: str) -> list[dict[str, Any]]:
    """The JSON samples behind a heading, up to the next one."""
    section = re.split(r"^##", PAGE[PAGE.index(begin) + len(begin) :], flags=re.MULTILINE)[0]
    blocks = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    return [json.loads(block) for block in blocks]


def shape(value: Any) -> Any:
    """What a sample and an answer have in common."""
    return {name: shape(one) for name, one in value.items()} if isinstance(value, dict) else type(value)


def test_the_samples_are_answered_as_shown(books: Any) -> None:
    books.finish()
    query, answer = samples("## A query: `POST /query`")
    query["path"] = "/books/ru"
    found = books.query(**{name: query.pop(name) for name in ("where", "path")}, **query)
    assert [shape(row) for row in found["results"]] == [shape(row) for row in answer["results"]]
    assert found["results"][0]["matched_by"] == answer["results"][0]["matched_by"]
    assert set(found) == set(answer)

    query, answer, groups = samples("### Aggregates")
    assert books.query(query["where"], "/books/ru", aggregate=query["aggregate"]) == answer
    found = books.query(
        {"field": "author", "op": "eq", "value": "Tolstoi"}, "/books/ru",
        aggregate={"group_by": ["author"], "max": ["year"]}, limit=9,
    )  # fmt: skip
    assert found == groups


def test_the_sample_of_a_match_is_one(books: Any) -> None:
    (sample,) = samples("### What rows hold")
    answer = books.query(
        {"field": "title", "op": "search", "value": "peace"}, "/books/ru", include_matches=True
    )
    assert answer["results"][0]["matches"] == [sample]


def test_a_plan_has_the_members_of_the_sample(books: Any) -> None:
    (sample,) = samples("### Plans")
    where = {
        "and": [
            {"field": "year", "op": "gt", "value": 1},
            {"field": "title", "op": "contains", "value": "war"},
        ]
    }
    plan = books.query(where, "/books/ru", explain="plan")["plan"]
    assert set(plan) == set(sample["plan"])
    for found, shown in zip(
        plan["children"][0]["children"], sample["plan"]["children"][0]["children"], strict=True
    ):
        assert set(found) == set(shown)
