"""Parsers: how the bytes of a file become a document that can be indexed.

Bytes and what is known of them flow in; a document of plain members and text flows out. Parsers run in
the background process, in a threadpool, never in a request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar

from svc.paths import Path

__all__ = ["ParsedDocument", "Parser", "ParserInput"]


@dataclass(frozen=True, slots=True)
class ParserInput:
    """A file to parse.

    Attributes:
        content: its bytes, seekable, at the start.
        size: how many.
        path: where the file lies.
        content_type: its media type, or None when unknown.
        maximum_text: characters of text after which the parser may stop.
    """

    content: BinaryIO
    size: int
    path: Path
    content_type: str | None
    maximum_text: int = 10_000_000


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a parser found.

    Attributes:
        members: a tree of mappings, sequences, strings, numbers, booleans and None; the ``source`` of an
            index definition walks it.
        text: the readable text, or None when the format has none.
    """

    members: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


class Parser(ABC):
    """Reads files of some formats. Stateless; used by many threads at once.

    Attributes:
        name: what the ``parser`` of an index configuration says.
        version: number that rises when the same bytes would give another document; a reindex follows.
        content_types: media types that it reads; ``text/*`` takes a whole family.
        extensions: file name extensions in lower case, without the dot, for files of unknown type.
        maximum_size: larger files are not given to it, in bytes.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    content_types: ClassVar[tuple[str, ...]] = ()
    extensions: ClassVar[tuple[str, ...]] = ()
    maximum_size: ClassVar[int] = 64 * 1024 * 1024

    @abstractmethod
    def parse(self, source: ParserInput) -> ParsedDocument:
        """Parses a file that may be hostile: memory and time stay in proportion to its size. Blocks.

        Raises:
            InvalidInput: the file is not what it claims to be. The file stays stored; the message shows in
                the index status. Any other exception is treated in the same way.
        """
