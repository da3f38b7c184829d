"""What a parser is made of; authors have it from ``svc_query.api``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, BinaryIO, ClassVar

import msgspec

__all__ = ["Guessed", "InPart", "Parser", "ParserInput"]


class ParserInput(msgspec.Struct, frozen=True):
    """What a parser is told of a file beside its bytes.

    Attributes:
        name: of the file.
        content_type: as it is stored.
        size: bytes.
        encoding: of texts whose media type has no ``charset``, as ``indexes.json`` says it, or None.
    """

    name: str
    content_type: str | None
    size: int
    encoding: str | None = None


class Parser(ABC):
    """Makes a document of a file: values as JSON has them, in dictionaries and lists.

    A parser has no state and takes no arguments: a child process makes its own, from the place where the
    class is defined. There it has limits on time, memory and size, and may hang, crash or be killed without
    harm.

    Attributes:
        name: what ``indexes.json`` calls it under ``parser``.
        content_types: media types that it reads; ``text/*`` stands for all of a kind.
        extensions: endings of names that it reads, lower case, without the dot; they decide where the media
            type is unknown or ``application/octet-stream``.
        in_process: whether it is so fast, and so sure not to hang or crash, that small files are parsed where
            they are indexed.
    """

    name: ClassVar[str]
    content_types: ClassVar[frozenset[str]] = frozenset()
    extensions: ClassVar[frozenset[str]] = frozenset()
    in_process: ClassVar[bool] = False

    @abstractmethod
    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns the document; ``InPart`` where not all of it can be read.

        ``Guessed`` says in which encoding it was read where nobody knows that.

        Args:
            content: the bytes, readable from the beginning, seekable.
            source: what else is known.

        Raises:
            Exception: the file can't be read; the message is shown to whoever may read the file.
        """


class InPart(msgspec.Struct, frozen=True):
    """What a parser may return for a document: what could be read; and why not all, for the index status."""

    document: Any
    reason: str


class Guessed(msgspec.Struct, frozen=True):
    """What a parser may return for a document: the encoding that it guessed, for the index status."""

    document: Any
    encoding: str
