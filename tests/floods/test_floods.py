"""Every operation is flooded, a new one too, by a request that the server can read."""

from __future__ import annotations

import pytest

from floods.dearest import Flood, Material, dearest_of, floods


@pytest.fixture(scope="module")
def all_floods() -> list[Flood]:
    return list(floods(Material()))


def test_the_dearest_requests_are_of_operations_that_there_are(all_floods: list[Flood]) -> None:
    names = {flood.operation.name for flood in all_floods}
    assert len(names) > 150
    assert set(dearest_of(Material())) <= names


def test_each_request_says_how_long_it_is(all_floods: list[Flood]) -> None:
    for flood in all_floods:
        head, _, body = flood.as_bytes("127.0.0.1", "token").partition(b"\r\n\r\n")
        stated = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length")]
        assert stated == ([b"Content-Length: %d" % len(body)] if stated or body else [])
