"""The questions of nodes. Bodies are CBOR; what they hold is the driver's affair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import Conflict, NotFound, ServiceUnavailable
from svc.plugin import Weight, operation, requires_root

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["ask_for_objects", "ask_for_registers", "ask_for_tree", "ask_to_pull", "say_hello"]

_CBOR = ("application/cbor", "application/cbor")
_ERRORS = (Conflict, NotFound, ServiceUnavailable)


@operation(
    "POST",
    "/sync/hello",
    requires_root,
    errors=_ERRORS,
    weight=Weight.STREAMING,
    media_types=_CBOR,
    responder="svc_sync_http.responders:say_hello",
    repeatable=True,
)
def say_hello(call: Call, body: bytes) -> bytes:
    """Tells another node who this one is, and judges whether they exchange anything."""


@operation(
    "POST",
    "/sync/registers",
    requires_root,
    errors=_ERRORS,
    weight=Weight.STREAMING,
    media_types=_CBOR,
    responder="svc_sync_http.responders:ask_for_registers",
    repeatable=True,
)
def ask_for_registers(call: Call, body: bytes) -> bytes:
    """Answers a page of what the asker does not know."""


@operation(
    "POST",
    "/sync/tree",
    requires_root,
    errors=_ERRORS,
    weight=Weight.STREAMING,
    media_types=_CBOR,
    responder="svc_sync_http.responders:ask_for_tree",
    repeatable=True,
)
def ask_for_tree(call: Call, body: bytes) -> bytes:
    """Answers a part of the version that is kept for a node that joins."""


@operation(
    "POST",
    "/sync/objects",
    requires_root,
    errors=_ERRORS,
    weight=Weight.STREAMING,
    media_types=_CBOR,
    responder="svc_sync_http.responders:ask_for_objects",
    repeatable=True,
)
def ask_for_objects(call: Call, body: bytes) -> bytes:
    """Answers hashes of chunks of a file, or chunks."""


@operation(
    "POST",
    "/sync/pull",
    requires_root,
    errors=_ERRORS,
    weight=Weight.STREAMING,
    media_types=_CBOR,
    responder="svc_sync_http.responders:ask_to_pull",
    repeatable=True,
)
def ask_to_pull(call: Call, body: bytes) -> bytes:
    """Lets this node pull from the asker, which has something new."""
