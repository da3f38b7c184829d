"""A backup of a third of a gigabyte goes out of one server and into another, and neither holds much of it."""

from __future__ import annotations

import http.client
import random
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from blake3 import blake3

from svc_blackbox.backups import BINARY
from svc_blackbox.client import Client
from svc_blackbox.memory import watch_memory
from svc_blackbox.server import Server
from svc_blackbox.versions import head_version

SIZE = 320 << 20
BOUND = 150 << 20


def noise() -> Iterator[bytes]:
    """Bytes that neither compress nor repeat."""
    random_ = random.Random(5)
    for _ in range(SIZE >> 20):
        yield random_.randbytes(1 << 20)


def stream(url: str) -> Iterator[bytes]:
    """The body of an export, as it comes."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    try:
        connection.request("POST", "/versions/export", b"")
        response = connection.getresponse()
        assert response.status == 200
        while piece := response.read(1 << 20):
            yield piece
    finally:
        connection.close()


@pytest.mark.timeout(300)
def test_export_and_import_stream(new_server: Callable[..., Server]) -> None:
    source, target = new_server("out", "--workers", "1"), new_server("in", "--workers", "1")
    for server in (source, target):
        server.client().store("/warm", b"x" * 1_000_000)
    digest = blake3()
    with Client(source.url, timeout=120) as client:

        def body() -> Iterator[bytes]:
            for piece in noise():
                digest.update(piece)
                yield piece

        response = client.request("PUT", "/files/big", body(), {"Content-Length": str(SIZE)})
        assert response.status == 201
        root = head_version(client)
    with watch_memory(source) as sending, watch_memory(target) as taking, Client(target.url, 120) as client:
        response = client.request(
            "POST", "/versions/import", stream(source.url), {**BINARY, "Transfer-Encoding": "chunked"},
            encode_chunked=True, promote="true",
        )  # fmt: skip
        assert response.status == 200, response.body
        assert response.json()["version_hash"] == root == head_version(client)
    print(f"growth while exporting {sending.growth >> 20} MiB, while importing {taking.growth >> 20} MiB")
    assert sending.growth < BOUND
    assert taking.growth < BOUND
    found = blake3()
    for part in range(0, SIZE, 16 << 20):
        with Client(target.url, 120) as client:
            found.update(client.get("/files/big", {"Range": f"bytes={part}-{part + (16 << 20) - 1}"}).body)
    assert found.digest() == digest.digest()
