"""The settings of the plugin: the limits of its routes, each with its default."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["HistoryConfiguration"]

_MIB = 1024 * 1024

_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]


class HistoryConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the history routes.

    Attributes:
        blame_size: largest file, in bytes, whose lines are blamed.
        blame_scan: bytes of a file's older contents that blame reads in all.
    """

    blame_size: _Bytes = 4 * _MIB
    blame_scan: _Bytes = 256 * _MIB
