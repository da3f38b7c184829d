"""The settings of the plugin: the limits of its routes, each with its default."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["HistoryConfiguration"]

_MIB = 1024 * 1024

_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]


class HistoryConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds in bytes.

    Of a file whose lines are blamed, of older contents that are read for it, and of a file whose lines are
    compared.
    """

    blame_size: _Bytes = 4 * _MIB
    blame_scan: _Bytes = 256 * _MIB
    compare_size: _Bytes = 1 * _MIB
