"""The floods: for each operation the dearest request that we can think of, and for a new one its example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from svc.operations import AccessKind, DeclaredOperation, operations_of, system
from svc.pipeline import check_route
from svc.pipeline.examples import example_of
from svc.plugins import load_plugins

__all__ = ["BIG", "DIRECTORY", "FILES", "TEXT", "Flood", "Material", "dearest_of", "floods"]

DIRECTORY = "data"
FILES = 10_000
BIG = f"{DIRECTORY}/big.json"
TEXT = f"{DIRECTORY}/text.txt"

_JSON = {"Content-Type": "application/json"}
_WORDS = [{"field": "@filename", "op": "similar", "value": f"nmae-{n}", "threshold": 0.0} for n in range(20)]
_FUZZY = {"path": "/data", "where": {"or": _WORDS}, "include_matches": True, "limit": 1000}
_MANY = [f"/data/d{number % 10}/name-{number}.txt" for number in range(1_000)]
_HASHES = [f"{number:064x}" for number in range(9_000)]


@dataclass(frozen=True)
class Material:
    """What a server holds that a request may name."""

    first: str = ""
    chunk: str = "0" * 64
    webhook: str = "none"


@dataclass(frozen=True)
class Request:
    """One request, as it differs from the plain one of its operation.

    Attributes:
        fields: of the URL template, by name.
        query: of the URL.
        body: JSON, or bytes.
        headers: further ones.
        template: takes the place of the operation's first one.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Flood:
    """A request of an operation, and who may send it: ``nobody``, ``user`` or ``root``."""

    operation: DeclaredOperation[..., Any]
    caller: str
    request: Request

    @property
    def name(self) -> str:
        """Method and URL template."""
        return f"{self.operation.method} {self.operation.templates[0]}"

    def as_bytes(self, host: str, credential: str | None) -> bytes:
        """The request as it goes over the wire; the connection ends behind it."""
        request = self.request
        template = self.operation.templates[0]
        url = re.sub(r"\{([^}:]+)[^}]*\}", lambda match: request.fields.get(match[1], "none"), template)
        query = f"?{request.query}" if request.query else ""
        lines = [f"{self.operation.method} {url}{query} HTTP/1.1", f"Host: {host}", "Connection: close"]
        body = request.body if isinstance(request.body, bytes) else b""
        headers = dict(request.headers)
        if request.body is not None and not isinstance(request.body, bytes):
            body = json.dumps(request.body).encode()
            headers = {**_JSON, **headers}
        if body or self.operation.method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = str(len(body))
        if credential:
            headers["Authorization"] = f"Bearer {credential}"
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body


def floods(material: Material) -> Iterator[Flood]:
    """Yields the floods of every operation that there is; what ends sessions comes last."""
    plugins = load_plugins(check_route=check_route)
    declared = [
        *operations_of(system),
        *(each for descriptor in plugins.descriptors.values() for each in descriptor.declared_operations()),
    ]
    for operation in sorted(declared, key=lambda each: each.name in _LAST):
        for request in dearest_of(material).get(operation.name) or [_example(operation)]:
            yield Flood(operation, _caller(operation), request)


def _caller(operation: DeclaredOperation[..., Any]) -> str:
    kind = operation.access.kind
    return {AccessKind.PUBLIC: "nobody", AccessKind.ROOT: "root"}.get(kind, "user")


def _example(operation: DeclaredOperation[..., Any]) -> Request:
    signature = operation.signature
    body = signature.body
    fields = {name: DIRECTORY if name == "path" else "none" for name in signature.fields}
    if body is None:
        return Request(fields)
    if body is bytes:
        return Request(fields, body=bytes(4 << 20))
    return Request(fields, body=example_of(body) | {"more": ["x"] * 200_000})


_LAST = ("rotate_signing_key",)
"""Operations after which keys and tokens may not count any more."""


def dearest_of(material: Material) -> dict[str, list[Request]]:
    """The dearest requests of operations, by name."""
    here, big, text = {"path": DIRECTORY}, {"path": BIG}, {"path": TEXT}
    since = f"from={material.first}"
    pointers = [{"path": f"/{BIG}", "json_pointer": f"/items/{number}/a"} for number in range(100)]
    return {
        "read_path": [
            Request(here, "depth=-1&limit=10000"),
            Request(here, "depth=-1&glob=**/*zzz*&limit=10000"),
            Request({"path": f"{DIRECTORY}/d1"}, "limit=10000"),
            Request(here, "deleted=true&depth=-1&limit=10000"),
            Request(big),
        ],
        "store_file": [Request({"path": f"{DIRECTORY}/put-%%%%"}, body=b"x" * (1 << 20))],
        "delete_path": [Request({"path": f"{DIRECTORY}/copied-%%%%"}, "recursive=true")],
        "change_path": [
            Request(big, body={"k%%%%": 1}, headers={"Content-Type": "application/merge-patch+json"}),
            Request({"path": f"{DIRECTORY}/d9"}, body={"to": f"/{DIRECTORY}/d9-%%%%"}),
        ],
        "fetch": [Request(body={"items": pointers}), Request(body={"paths": _MANY})],
        "download": [Request(body={"paths": [f"/{DIRECTORY}"]})],
        "copy": [
            Request(body={"paths": [f"/{DIRECTORY}/d1"], "to": f"/{DIRECTORY}/copied-%%%%"}),
        ],
        "batch": [
            Request(
                body={
                    "operations": [
                        {"op": "put", "path": f"/{DIRECTORY}/b%%%%/{number}", "content": "x"}
                        for number in range(2_000)
                    ]
                }
            ),
            Request(body={"operations": [{"op": "delete", "path": "a"}] * 300_000}),
        ],
        "list_deleted": [Request(query=f"path=/{DIRECTORY}&limit=1000")],
        "restore_deleted": [Request(body={"path": f"/{DIRECTORY}/gone"})],
        "check_chunks": [Request(body={"hashes": _HASHES})],
        "commit_chunks": [
            Request(body={"files": [{"path": f"/{DIRECTORY}/c", "chunks": [material.chunk] * 100_000}]})
        ],
        "read_chunk": [Request({"hash": material.chunk})],
        "store_chunk": [Request({"hash": material.chunk}, body=bytes(1 << 18))],
        "query_files": [
            Request(body=_FUZZY),
            Request(body={"path": "/data", "where": [], "limit": 1000, "include_total": True}),
            Request(
                body={
                    "path": "/data",
                    "where": {"field": "@filename", "op": "contains", "value": "zzz"},
                    "order_by": [{"field": "@size"}],
                }
            ),
        ],
        "search_files": [Request(body={"query": "nmae wrod", "path": "/data", "limit": 1000})],
        "show_index_status": [Request(query=f"path=/{DIRECTORY}")],
        "list_commits": [Request(query=f"path=/{DIRECTORY}&limit=1000")],
        "show_commit": [Request({"version": material.first}, "limit=1000")],
        "compare_versions": [Request(query=since)],
        "compare_texts": [Request(text, since)],
        "blame_path": [Request(text)],
        "show_history": [Request(text, "limit=1000")],
        "stream_events": [Request(query="follow=false&last_event_id=0"), Request(query="last_event_id=0")],
        "stream_own_events": [Request(query="follow=false&last_event_id=0")],
        "read_changes": [Request(body={"paths": [f"/{DIRECTORY}"]}), Request(body={})],
        "read_chunks": [Request(body={"hashes": [material.chunk] * 1_000})],
        "create_fork": [Request(body={"name": "f%%%%"})],
        "create_snapshot": [Request(body={"name": "s%%%%"})],
        "merge_versions": [Request(body={"source": material.first})],
        "show_page": [Request({"page": page}) for page in ("files", "files/data", "queries", "histories")],
        "export_version": [Request()],
        "diff_versions": [Request(body={"from": material.first})],
        "test_webhook": [Request({"webhook": material.webhook})],
        "exchange_key": [Request(body={"api_key": "svc_k_00000000_wrong"})],
        "refresh_tokens": [Request(body={"refresh_token": "rt_wrong%%%%"})],
        "list_users": [Request(query="limit=1000")],
        "create_group": [Request(body={"name": "g%%%%", "members": []})],
    }
