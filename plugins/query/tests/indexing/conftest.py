"""Databases with the view of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from svc_query.testing.indexed_database import Indexed, Source


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def open_index(tmp_path: Path, source: Source) -> Iterator[Callable[..., Indexed]]:
    opened: list[Indexed] = []

    def make(name: str = "indexed", **settings: object) -> Indexed:
        opened.append(Indexed(tmp_path / f"{name}.svcdb", source, **settings))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def indexed(open_index: Callable[..., Indexed]) -> Indexed:
    return open_index()
