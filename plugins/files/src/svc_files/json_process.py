"""Large JSON documents are worked on in a process of their own: a decoder holds the interpreter's lock.

Small ones are worked on in place: 64 KiB take 10 ms at worst, to decode and to write again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from svc.errors import InvalidInput, ServiceUnavailable
from svc.plugin import run_blocking
from svc_files.child_process import run_in_child
from svc_files.json_child import Answer, Found, Task, find_values
from svc_files.json_documents import apply_merge_patch, decode_json, encode_json

__all__ = ["IN_PLACE_BYTES", "merge_patch", "values_at"]

IN_PLACE_BYTES = 64 * 1024


def values_at(size: int, read: Callable[[], bytes], pointers: Sequence[str], most: int) -> list[Found] | None:
    """Returns what stands at pointers of a document, as JSON, or why nothing does. Blocks.

    Args:
        size: bytes of the document.
        read: gives it.
        pointers: where to look.
        most: bytes of all values; None is returned where they are more.

    Raises:
        InvalidInput: the document is no JSON.
    """
    if size <= IN_PLACE_BYTES:
        return find_values(decode_json(read(), "The file"), pointers, most)
    task = Task(list(pointers), size, most)
    answer = run_blocking(lambda: _ask(task, read())[0])
    return None if answer.is_too_much else answer.found


def merge_patch(document: bytes, patch: bytes) -> bytes:
    """Returns a document with a patch merged in (RFC 7396); an empty document is none. Blocks.

    Raises InvalidInput where one of them is no JSON.
    """
    if len(document) + len(patch) <= IN_PLACE_BYTES:
        present = decode_json(document, "The stored file") if document else None
        return encode_json(apply_merge_patch(present, decode_json(patch, "The merge patch")))
    _, merged = run_blocking(_ask, Task(None, len(document)), document, patch)
    return merged


def _ask(task: Task, *contents: bytes) -> tuple[Answer, bytes]:
    answered = run_in_child("svc_files.json_child", msgspec.json.encode(task), b"\n", *contents)
    line, separator, rest = answered.partition(b"\n")
    answer = msgspec.json.decode(line, type=Answer) if separator else None
    # Whoever was killed while it wrote has left a part.
    if answer is None or answer.size != len(rest):
        raise ServiceUnavailable("The document could not be worked on in time.", retry_after=10)
    if answer.error:
        raise InvalidInput(answer.error)
    return answer, rest
