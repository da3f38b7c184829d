"""Answers of queries at HEAD, beside those of the walk over the same state."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from svc_blackbox.client import Client
from svc_blackbox.server import Server

Json = Any
CONFIGURATION = "/.svc-config/indexes.json"


def store(client: Client, path: str, value: Json) -> None:
    client.store(path, json.dumps(value).encode(), {"Content-Type": "application/json"})


def ask(client: Client, path: str, where: Json, **members: Json) -> Json:
    return client.send_json("POST", "/query", {"path": path, "where": where, **members})


def paths(client: Client, path: str, where: Json, **members: Json) -> list[str]:
    response = ask(client, path, where, limit=1000, **members)
    assert response.status == 200, response.body
    return sorted(row["path"] for row in response.json()["results"])


def both(client: Client, path: str, where: Json) -> tuple[list[str], list[str]]:
    """What HEAD's index and the walk of the same state answer."""
    version = client.head("/files/")["X-Svc-Version"]
    return paths(client, path, where), paths(client, path, where, version=version)


@pytest.fixture
def client(new_server: Callable[..., Server]) -> Client:
    return new_server("data", "--auth", "disabled").client()


@pytest.mark.parametrize("where", [[], {"field": "@size", "op": "gt", "value": 0}])
def test_files_that_no_glob_takes(client: Client, where: Json) -> None:
    store(client, "/b/taken.json", {"year": 1})
    store(client, "/b/n/other.json", {"year": 1})
    store(client, CONFIGURATION, {"glob": "b/*.json", "indexes": [{"name": "year", "type": "exact"}]})
    index, walk = both(client, "/b", where)
    assert index == walk


@pytest.mark.parametrize("step", [10**40, -(10**30)])
def test_a_step_beyond_64_bits_harms_nobody_else(client: Client, step: int) -> None:
    store(client, "/good/a.json", {"t": "war"})
    fields = [{"name": "t", "type": "exact", "source": ["list", step]}]
    put = client.request(
        "PUT", f"/files/evil{CONFIGURATION}", json.dumps({"glob": "**/*", "indexes": fields}).encode()
    )
    assert put.status in (201, 400)
    assert ask(client, "/good", []).status == 200


def test_search_where_only_a_part_has_full_text(client: Client) -> None:
    store(
        client,
        "/a" + CONFIGURATION,
        {"glob": "**/*", "indexes": [{"name": "t", "type": ["fulltext", "trigram"]}]},
    )
    store(client, "/b" + CONFIGURATION, {"glob": "**/*", "indexes": [{"name": "t", "type": "exact"}]})
    store(client, "/a/x.json", {"t": "war"})
    store(client, "/b/y.json", {"t": "war"})
    contains, _ = both(client, "/", {"field": "t", "op": "contains", "value": "war"})
    assert contains == ["/a/x.json", "/b/y.json"]
    index, walk = both(client, "/", {"field": "t", "op": "search", "value": "war"})
    assert index == walk
