"""A plugin whose index type breaks: queries of everything else go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from svc_testing import DistributionFactory, Server, start_server

JSON = {"Content-Type": "application/json"}
DESCRIPTOR = """
from svc.plugin import PluginDescriptor

PLUGIN = PluginDescriptor(
    "index.lengths", "1.0", "Lengths of texts", (1, 1), "svc_lengths", extends=("query:index_types",),
)
"""
IMPLEMENTATION = """
import os

from svc.plugin import hookimpl
from svc_query.api import TermIndexType

if "SVC_TESTS_BREAK" in os.environ:
    raise RuntimeError("a library is gone")


class Lengths(TermIndexType):
    name = "lengths"
    format = 1

    def terms(self, value, options):
        return [str(len(str(value))).encode()]


@hookimpl
def svc_register_index_types(index_types):
    index_types.add(Lengths())
"""
PLUGINS = ("query", "index.exact", "index.lengths", "parsers")


def configuration(kind: str) -> bytes:
    return json.dumps({"glob": "**/*", "indexes": [{"name": "t", "type": kind}]}).encode()


def query(server: Server, path: str) -> tuple[int, Any]:
    where = [{"field": "t", "op": "eq", "value": "x"}]
    body = json.dumps({"path": path, "where": where}).encode()
    answer = server.request("POST", "/query", body=body, headers=JSON)
    return answer.status, answer.json()


def put(server: Server, path: str, body: bytes) -> None:
    assert server.request("PUT", f"/files{path}", body=body, headers=JSON).status in (200, 201)


def test_one_broken_index_type_stops_no_query_of_the_rest(tmp_path: Path) -> None:
    factory = DistributionFactory(tmp_path / "installed", in_process=False)
    factory.install(
        "svc-index-lengths",
        modules={"svc_lengths_descriptor": DESCRIPTOR, "svc_lengths": IMPLEMENTATION},
        entry_points={"index.lengths": "svc_lengths_descriptor:PLUGIN"},
    )
    path = tmp_path / "x.svcdb"
    plugins = ("files", *PLUGINS)
    for round_, variables in enumerate(({}, {"SVC_TESTS_BREAK": "1"}, {})):
        with start_server(path, plugins=plugins, env=factory.environment(variables)) as server:
            if not round_:
                put(server, "/lengths/.svc-config/indexes.json", configuration("lengths"))
                put(server, "/exact/.svc-config/indexes.json", configuration("exact"))
            put(server, f"/exact/{round_}.json", b'{"t": "x"}')
            put(server, f"/lengths/{round_}.json", b'{"t": "x"}')
            status, found = query(server, "/exact")
            assert (status, len(found.get("results", ()))) == (200, round_ + 1), found
