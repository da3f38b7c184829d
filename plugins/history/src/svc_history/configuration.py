"""The settings of the plugin: the limits of its routes, each with its default."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["HistoryConfiguration"]

_MIB = 1024 * 1024

_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]


class HistoryConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of blame, in bytes: of a file whose lines are blamed, and of older contents that are read."""

    blame_size: _Bytes = 4 * _MIB
    blame_scan: _Bytes = 256 * _MIB
