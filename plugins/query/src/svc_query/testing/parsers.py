"""The contract of a parser, as tests.

class TestMine(ParserContract):
    plugin_id = "acme.mine"
    samples = {"letter.mine": b"..."}
    documents = {"letter.mine": {"title": "A letter", "text": "..."}}

    @pytest.fixture
    def extension(self):
        return MyParser()
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from svc_query.api import PARSERS, Parser, ParserInput
from svc_query.configuration import QueryConfiguration
from svc_query.parsing import ParseResult, ParserPool, choose_parser, parse_in_process
from svc_testing import ExtensionContract

__all__ = ["ParserContract"]

_SECONDS = 10.0
_MEDIA_TYPE = re.compile(r"[a-z*][a-z0-9.+*-]*/[a-z0-9*][a-z0-9.+*-]*")
_EXTENSION = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)?")
_BROKEN = 12


class ParserContract(ExtensionContract):
    """Tests of a parser. A subclass sets ``plugin_id`` and ``samples``, and gives the fixture ``extension``.

    Attributes:
        samples: whole files that the parser reads, by names as users give them; at least one.
        documents: what some of them come to.
        unreadable: files that it refuses, by their names.
    """

    family = PARSERS
    samples: ClassVar[Mapping[str, bytes]] = {}
    documents: ClassVar[Mapping[str, Any]] = {}
    unreadable: ClassVar[Mapping[str, bytes]] = {}

    @pytest.fixture
    def parser_pool(self) -> Iterator[ParserPool]:
        """Child processes with the limits of a server; none is left afterwards."""
        pool = ParserPool(QueryConfiguration(parse_seconds=_SECONDS))
        yield pool
        children = pool.children
        pool.close()
        assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []

    def test_there_are_samples(self) -> None:
        """A contract without files would test nothing; documents belong to samples."""
        assert self.samples
        assert set(self.documents) <= set(self.samples)

    def test_what_it_reads_is_named_as_it_is_compared(self, extension: Parser) -> None:
        """Media types and endings are lower case, types without parameters, endings without the dot."""
        assert extension.content_types or extension.extensions
        assert [item for item in extension.content_types if not _MEDIA_TYPE.fullmatch(item)] == []
        assert [item for item in extension.extensions if not _EXTENSION.fullmatch(item)] == []

    def test_its_samples_are_chosen_for_it(self, extension: Parser) -> None:
        """By the name, by each media type, and by its own name, whatever the file is called."""
        known = {extension.name: extension}
        if extension.extensions:
            chosen = [choose_parser(known, None, name, None) for name in self.samples]
            assert chosen == [extension] * len(self.samples)
        for content_type in extension.content_types:
            stored = content_type.replace("*", "x")
            assert choose_parser(known, f"{stored}; charset=utf-8", "file", None) is extension
        assert choose_parser(known, "application/x-other", "file", extension.name) is extension

    def test_a_child_process_reads_its_samples(self, extension: Parser, parser_pool: ParserPool) -> None:
        """A child makes the parser from its class, with nothing but its name; documents are as promised."""
        for name, content in self.samples.items():
            result = parser_pool.parse(extension, content, _source(name, content))
            assert result.failure is None, f"{name}: {result.failure}"
            if name in self.documents:
                assert result.document == self.documents[name], name

    def test_it_has_no_state(self, extension: Parser, parser_pool: ParserPool) -> None:
        """A file comes to the same whatever was read before, whole or broken, here or in a child."""
        order = [*self.samples.items(), *reversed(list(self.samples.items()))]
        for name, content in order:
            expected = parse_in_process(extension, content, _source(name, content))
            assert expected.failure is None, f"{name}: {expected.failure}"
            parser_pool.parse(extension, content[: len(content) // 2], _source(name, content))
            assert parser_pool.parse(extension, content, _source(name, content)) == expected, name

    def test_what_it_can_not_read_is_told_in_words(self, extension: Parser, parser_pool: ParserPool) -> None:
        """The message is a sentence that a user understands, and not one about memory or time."""
        for name, content in self.unreadable.items():
            failure = parser_pool.parse(extension, content, _source(name, content)).failure
            assert failure is not None, f"{name} was read."
            assert f"The parser {extension.name} can't read it: " in failure, failure

    def test_broken_files_cost_nothing_but_themselves(
        self, extension: Parser, parser_pool: ParserPool
    ) -> None:
        """Empty, cut, changed and random files are read or refused within the limits; the child survives.

        A parser that is ``in_process`` does so in the process itself.
        """
        for name, content in self.samples.items():
            for broken in _broken_files(name, content):
                source = _source(name, broken)
                self._check(parser_pool.parse(extension, broken, source))
                if extension.in_process:
                    self._check(parse_in_process(extension, broken, source))

    @staticmethod
    def _check(result: ParseResult) -> None:
        assert not result.transient, result.failure
        assert result.failure is None or "can't read it" in result.failure, result.failure


def _source(name: str, content: bytes) -> ParserInput:
    return ParserInput(name, None, len(content))


def _broken_files(name: str, content: bytes) -> Iterator[bytes]:
    """The same ones in each run."""
    yield b""
    yield bytes(1_000)
    chance = Random(name)
    yield chance.randbytes(1_000)
    for _ in range(_BROKEN if content else 0):
        yield content[: chance.randrange(len(content))]
        changed = bytearray(content)
        for _ in range(1 + len(content) // 200):
            changed[chance.randrange(len(content))] = chance.randrange(256)
        yield bytes(changed)
