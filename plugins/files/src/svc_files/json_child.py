"""The process that works on one large JSON document, from standard input to standard output.

The input is a task, a line of JSON, then the document, then the patch if there is one. The output is the
answer, a line of JSON, then the merged document.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from svc.errors import InvalidInput, SvcError
from svc_files.json_documents import apply_merge_patch, decode_json, encode_json, resolve_pointer

__all__ = ["Answer", "Found", "Task", "find_values", "main"]

_SECONDS = 10
_BYTES = 4 << 30


class Task(msgspec.Struct, frozen=True):
    """What to do: look pointers up, or merge a patch in.

    Attributes:
        pointers: where to look; None: merge.
        size: bytes of the document; 0 is none, which a merge makes.
        most: bytes of all values that pointers find; more is too much.
    """

    pointers: list[str] | None
    size: int
    most: int = 0


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stands at a pointer, as JSON; or why nothing does."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    is_missing: bool = False


class Answer(msgspec.Struct, frozen=True):
    """What came of it, or the error of the document. Of a merge a document of so many bytes follows.

    Where the values that were found are too much, there are none, and ``is_too_much``.
    """

    error: str = ""
    found: list[Found] = []
    is_too_much: bool = False
    size: int = 0


def main() -> None:
    """Does what standard input says."""
    gc.disable()  # A document has no cycles, and as many objects as the collector looks at again and again.
    os.nice(10)  # Whoever is served meanwhile comes first.
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    line, _, content = sys.stdin.buffer.read().partition(b"\n")
    task = msgspec.json.decode(line, type=Task)
    merged = b""
    try:
        if task.pointers is None:
            merged = _merged(content[: task.size], content[task.size :])
            answer = Answer(size=len(merged))
        else:
            found = find_values(decode_json(content, "The file"), task.pointers, task.most)
            answer = Answer(is_too_much=True) if found is None else Answer(found=found)
    except (SvcError, MemoryError) as error:
        message = error.message if isinstance(error, SvcError) else "The document takes too much memory."
        answer = Answer(message)
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n" + merged)
    sys.stdout.buffer.flush()


def _merged(document: bytes, patch: bytes) -> bytes:
    present: Any = decode_json(document, "The stored file") if document else None
    return encode_json(apply_merge_patch(present, decode_json(patch, "The merge patch")))


def find_values(document: Any, pointers: Sequence[str], most: int) -> list[Found] | None:
    """Returns what stands at pointers, as JSON, or why nothing does; None where all is more than ``most``."""
    found: list[Found] = []
    for pointer in pointers:
        found.append(_value_at(document, pointer))
        most -= len(bytes(found[-1].value))
        if most < 0:
            return None
    return found


def _value_at(document: Any, pointer: str) -> Found:
    try:
        return Found(msgspec.Raw(encode_json(resolve_pointer(document, pointer))))
    except SvcError as error:
        return Found(error=error.message, is_missing=not isinstance(error, InvalidInput))
