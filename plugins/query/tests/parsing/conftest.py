"""Pools of the tests, and parsers that children can import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from svc_query.api import ParserInput
from svc_query.configuration import QueryConfiguration
from svc_query.parsing import ParserPool

IMPORTABLE = str(Path(__file__).parent / "importable")
if IMPORTABLE not in sys.path:
    sys.path.append(IMPORTABLE)

CONFIGURATION = QueryConfiguration(
    parse_seconds=1.0, parse_memory=200 << 20, parse_output=2 << 20, parse_input=32 << 20
)


@pytest.fixture
def make_pool() -> Iterator[Callable[..., ParserPool]]:
    """Makes pools; afterwards none of their children is left."""
    pools: list[ParserPool] = []

    def make(idle_seconds: float = 20.0, parses: int = 500, **changes: object) -> ParserPool:
        configuration = msgspec.structs.replace(CONFIGURATION, **changes)
        pools.append(ParserPool(configuration, idle_seconds=idle_seconds, parses=parses))
        return pools[-1]

    yield make
    for pool in pools:
        children = pool.children
        pool.close()
        assert pool.children == ()
        assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []


@pytest.fixture
def pool(make_pool: Callable[..., ParserPool]) -> ParserPool:
    return make_pool()


@pytest.fixture
def source() -> ParserInput:
    return ParserInput("book.txt", "text/plain", 4)
