"""Exports, patches and imports as a client asks for them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from svc_blackbox.client import Client, Response, files, links
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.versions import contents, head_version, make_snapshot, tree

BINARY = {"Content-Type": "application/octet-stream"}


def export(client: Client, **query: object) -> bytes:
    """A full export as the body of an answer."""
    response = client.request("POST", "/versions/export", b"", **query)
    assert response.status == 200, (query, response.status, response.body[:500])
    return response.body


def patch(client: Client, **query: object) -> bytes:
    """A patch as the body of an answer: ``from`` and ``to`` as in the query."""
    response = client.request("POST", "/versions/diff", b"", **query)
    assert response.status == 200, (query, response.status, response.body[:500])
    return response.body


def send(client: Client, backup: bytes, **query: object) -> Response:
    """Sends a backup as the body of an import."""
    return client.request("POST", "/versions/import", backup, BINARY, **query)


def imported(client: Client, backup: bytes, **query: object) -> Any:
    """Imports a backup and insists on success; returns the report."""
    response = send(client, backup, **query)
    assert response.status == 200, (query, response.status, response.body[:500])
    return response.json()


def version_of(database: Path) -> str:
    """HEAD's root hash in a database file."""
    version: str = json.loads(run_svc("info", "-D", database, "--json").stdout)["version"]
    return version


def content_of(database: Path, destination: Path, *options: str) -> dict[str, bytes]:
    """All files of a database file, written out by ``svc dump``."""
    run_svc("dump", "-q", "-D", database, destination, *options)
    return {
        "/" + path.relative_to(destination).as_posix(): path.read_bytes()
        for path in destination.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@dataclass
class Source:
    """A database with the snapshots ``one`` and ``two``, and a HEAD that differs from both.

    Attributes:
        server: serves it.
        roots: root hash of ``one``, ``two`` and ``HEAD``.
        contents: content of every file at each of them.
        trees: content hash of every file at each of them.
        secrets: random contents that stand in one version only, by its name.
    """

    server: Server
    roots: dict[str, str] = field(default_factory=dict)
    contents: dict[str, dict[str, bytes]] = field(default_factory=dict)
    trees: dict[str, dict[str, str]] = field(default_factory=dict)
    secrets: dict[str, bytes] = field(default_factory=dict)

    def remember(self, client: Client, name: str) -> None:
        query = {} if name == "HEAD" else {"snapshot": name}
        self.roots[name] = head_version(client, **query)
        self.contents[name] = contents(client, **query)
        self.trees[name] = tree(client, **query)


def fill(server: Server) -> Source:
    """Makes the history."""
    source, client = Source(server), server.client()
    random_ = random.Random(4)
    for name in ("one", "two", "HEAD"):
        source.secrets[name] = random_.randbytes(3000)
    client.store("/text.txt", b"first line\nsecond line\n" * 200, {"Content-Type": "text/plain"})
    client.store("/big.bin", random_.randbytes(900_000))
    client.store("/secret", source.secrets["one"])
    client.store("/d/gone", b"gone after one")
    client.store("/d/e/kept", b"kept")
    client.send_json("PUT", links("/link"), {"target": "/d/e/kept"})
    client.post("/files/mkdir", {"path": "/empty"})
    make_snapshot(client, "one", metadata={"note": "metadata-of-one"})
    source.remember(client, "one")
    client.store("/secret", source.secrets["two"])
    client.store("/new", b"new in two")
    client.delete(files("/d/gone"))
    client.send_json("PATCH", files("/big.bin"), {"to": "/moved/big.bin"})
    make_snapshot(client, "two")
    source.remember(client, "two")
    client.store("/secret", source.secrets["HEAD"])
    client.store("/text.txt", b"first line\nchanged line\n" * 200)
    client.delete(files("/empty"))
    source.remember(client, "HEAD")
    return source
