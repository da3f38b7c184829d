"""The settings of the plugin: the bounds of its routes, each with its default."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["MirrorConfiguration"]

_Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class MirrorConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of one request: entries that a page of changes looks at, and bytes of chunks in an answer."""

    scan_entries: _Count = 20_000
    chunk_bytes: _Count = 4 << 20
