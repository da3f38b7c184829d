"""An operator of a stranger that fails, or gives what it must not, is named; no client gets what it gave."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from svc_testing import DistributionFactory, Server, start_server

JSON = {"Content-Type": "application/json"}
DESCRIPTOR = """
from svc.plugin import PluginDescriptor

PLUGIN = PluginDescriptor(
    "test.odd", "1.0", "For tests", (1, 1), "svc_odd.plugin", extends=("query:query_operators",),
)
"""
IMPLEMENTATION = """
from svc.plugin import hookimpl
from svc_query.api import Predicate, QueryOperator

SCORES = {"text": "rubbish", "large": 7, "zero": 0.0, "nothing": float("nan")}


class Odd(Predicate):
    scored = True

    def __init__(self, value):
        self.value = value

    def test(self, value):
        if self.value == "fails":
            raise ZeroDivisionError("a fault of the operator")
        return SCORES.get(self.value, 0.5)

    def estimate(self, indexes):
        return None

    def candidates(self, indexes):
        return None

    def matches(self, text):
        return {"places": 7, "pair": [3], "outside": [(0, 1000)], "reversed": [(1, 0)]}.get(self.value, [])


class OddOperator(QueryOperator):
    name = "odd"
    index_types = ()

    def compile(self, leaf):
        return "rubbish" if leaf.value == "compiles" else Odd(leaf.value)


@hookimpl
def svc_register_query_operators(query_operators):
    query_operators.add(OddOperator())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("odd")
    factory = DistributionFactory(directory / "installed", in_process=False)
    factory.install(
        "svc-odd",
        modules={"svc_odd_descriptor": DESCRIPTOR, "svc_odd.plugin": IMPLEMENTATION},
        entry_points={"test.odd": "svc_odd_descriptor:PLUGIN"},
    )
    plugins = ("files", "query", "test.odd")
    with start_server(directory / "x.svcdb", plugins=plugins, env=factory.environment({})) as running:
        assert running.request("PUT", "/files/a.txt", body=b"a").status == 201
        yield running


def query(server: Server, value: str, **more: Any) -> tuple[int, Any]:
    where = [{"field": "@filename", "op": "odd", "value": value}]
    body = json.dumps({"path": "/", "where": where, **more}).encode()
    answer = server.request("POST", "/query", body=body, headers=JSON)
    return answer.status, answer.json()


def wait_for_error(server: Server, words: str) -> None:
    """The server's log comes through a pipe, and may come behind an answer."""
    deadline = time.monotonic() + 20
    while words not in server.errors:
        assert time.monotonic() < deadline, server.errors
        time.sleep(0.05)


def test_a_score_that_is_none_reaches_no_client(server: Server) -> None:
    status, found = query(server, "well")
    assert (status, [row["score"] for row in found["results"]]) == (200, [0.5])
    for value in ("text", "large", "zero", "nothing"):
        status, found = query(server, value)
        assert (status, found["code"]) == (500, "INTERNAL_ERROR")
    wait_for_error(server, "operator 'odd' gives")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("compiles", "for what it compiles"),
        ("places", "for the places of matches"),
        ("pair", "for the place of a match"),
        ("outside", "for the place of a match"),
        ("reversed", "for the place of a match"),
    ],
)
def test_whatever_an_operator_gives_is_checked(server: Server, value: str, words: str) -> None:
    status, found = query(server, value, include_matches=True)
    assert (status, found["code"]) == (500, "INTERNAL_ERROR")
    wait_for_error(server, "The query operator 'odd' gives")
    wait_for_error(server, words)
    wait_for_error(server, "plugin=test.odd")


def test_what_fails_again_and_again_is_a_finding_of_the_plugin_at_fault(server: Server) -> None:
    for _ in range(3):
        assert query(server, "fails")[0] == 500
    found = server.get("/system/findings").json()["findings"]
    (finding,) = [one for one in found if one["code"] == "plugin.failing"]
    assert finding["source"] == "test.odd"
    assert finding["subject"] == "/query"
    assert "ZeroDivisionError: a fault of the operator" in finding["detail"]
    wait_for_error(server, "plugin=test.odd")
