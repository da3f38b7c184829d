"""What the plugin can do, declared once: route, OpenAPI, and calls of programs follow from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from svc.errors import NotFound
from svc.plugin import Operation, Path, operation, requires

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["Size", "size_of"]


class Size(Struct, frozen=True):
    """How much lies below a path."""

    files: int
    bytes: int


@operation("GET", "/sizes/{path:path}", requires(Operation.LIST, path="path"), errors=(NotFound,))
def size_of(call: Call, path: Path) -> Size:
    """Counts the files below a directory, and their bytes."""
    totals = call.database.at().totals(path)
    return Size(totals.files, totals.size)
