"""What clients ask that keep a copy of what they may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import NotFound, PreconditionFailed
from svc.plugin import Operation, Weight, operation, requires_in_body
from svc_mirror.models import Chunks, ChunksQuestion, DiffPage, DiffQuestion

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["read_changes", "read_chunks"]

_ACCESS = requires_in_body(Operation.READ, Operation.LIST)


@operation(
    "POST",
    "/sync/diff",
    _ACCESS,
    errors=(NotFound,),
    weight=Weight.DEAR,
    reads=True,
    repeatable=True,
)
def read_changes(call: Call, body: DiffQuestion) -> DiffPage:
    """Tells what changed since what the caller has, of what it may see, page by page."""
    from svc_mirror.changes import changes_page

    return changes_page(call, body)


@operation(
    "POST",
    "/sync/chunks",
    _ACCESS,
    errors=(NotFound, PreconditionFailed),
    weight=Weight.DEAR,
    reads=True,
    repeatable=True,
    responder="svc_mirror.chunks:send_chunks",
)
def read_chunks(call: Call, body: ChunksQuestion) -> Chunks:
    """Answers chunks of files at HEAD that the caller may read, or names the chunks of such a file.

    With ``Accept: application/cbor`` the answer is CBOR, and the bytes are bytes.
    """
