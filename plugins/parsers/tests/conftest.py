"""All parsers, and a pool of child processes that they run in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from svc_parsers.parsers import PARSERS
from svc_query.api import Parser, ParserInput
from svc_query.configuration import QueryConfiguration
from svc_query.parsing import ParseResult, ParserPool, choose_parser, parse_in_process

MAKING = str(Path(__file__).parent / "making")
if MAKING not in sys.path:
    sys.path.append(MAKING)

BY_NAME: dict[str, Parser] = {parser.name: parser() for parser in PARSERS}


def parse_here(name: str, content: bytes) -> ParseResult:
    """Reads a file in this process."""
    parser = choose_parser(BY_NAME, None, name, None)
    assert parser is not None
    return parse_in_process(parser, content, ParserInput(name, None, len(content)))


@pytest.fixture(scope="session")
def pool() -> Iterator[ParserPool]:
    """The children of this session's tests: the limits are those of a server, but for the time."""
    pool = ParserPool(QueryConfiguration(parse_seconds=20.0))
    yield pool
    pool.close()


@pytest.fixture
def read(pool: ParserPool) -> Callable[..., Any]:
    """Reads a file as a database would, in a child and in place, and returns the document."""

    def read(name: str, content: bytes, content_type: str | None = None) -> Any:
        parser = choose_parser(BY_NAME, content_type, name, None)
        assert parser is not None, name
        source = ParserInput(name, content_type, len(content))
        result = pool.parse(parser, content, source)
        assert result.failure is None, result.failure
        assert parse_in_process(parser, content, source) == result
        return result.document

    return read


@pytest.fixture
def refuse(pool: ParserPool) -> Callable[..., str]:
    """Reads a file that can't be read, and returns why."""

    def refuse(name: str, content: bytes, content_type: str | None = None) -> str:
        parser = choose_parser(BY_NAME, content_type, name, None)
        assert parser is not None, name
        result = pool.parse(parser, content, ParserInput(name, content_type, len(content)))
        assert isinstance(result, ParseResult)
        assert result.failure is not None, result.document
        return result.failure

    return refuse
