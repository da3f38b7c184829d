"""What a pool and its children say to each other over two pipes.

To a child: a frame with its ``Settings``; then for each file a frame with a ``Request``, and when the child
has answered ``READY`` the bytes of the file in frames, ended by an empty one. A frame is a length of four
bytes, most significant first, and so many bytes.

From a child: one byte that says what it is, the token of the request, a length of four, and so many bytes:
``READY`` when it can take files, and when it has loaded the parser of a request; ``DOCUMENT`` with JSON,
before it a line with the encoding that was guessed, a tab, and why it is not all of the document, or
``FAILURE`` with a sentence when it is done; ``LAST_DOCUMENT`` and ``LAST_FAILURE`` when it ends then.
"""

from __future__ import annotations

import struct

import msgspec

__all__ = [
    "ANSWER",
    "DOCUMENT",
    "FAILURE",
    "FRAME",
    "LAST_DOCUMENT",
    "LAST_FAILURE",
    "MAXIMUM_FRAME",
    "READY",
    "Request",
    "Settings",
]

FRAME = struct.Struct(">I")
ANSWER = struct.Struct(">cQI")
MAXIMUM_FRAME = 1 << 20
"""Bytes of one frame to a child; a file takes several."""

READY = b"R"
DOCUMENT = b"D"
FAILURE = b"F"
LAST_DOCUMENT = b"d"
LAST_FAILURE = b"f"


class Settings(msgspec.Struct, frozen=True):
    """What a child is told once.

    Attributes:
        seconds: wall time of one parse.
        memory: bytes of its address space.
        output: bytes of an encoded document.
        idle_seconds: after how long without a request it ends.
        parses: after how many files it ends.
        restrict: whether it gives up files, network and processes; False only where that is measured.
    """

    seconds: float
    memory: int
    output: int
    idle_seconds: float
    parses: int
    restrict: bool = True


class Request(msgspec.Struct, frozen=True):
    """What a child is told of a file before its bytes, and of the class of its parser.

    ``token`` is a random number that each answer to it repeats, so that nothing older is taken for one.
    """

    module: str
    qualified_name: str
    name: str
    content_type: str | None
    size: int
    token: int
    encoding: str | None = None
