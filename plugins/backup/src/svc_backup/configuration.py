"""Settings of the plugin in one database."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["BackupConfiguration"]

_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 50)]
_Factor = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class BackupConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of what is imported.

    Attributes:
        maximum_import: bytes of a file that is imported over HTTP.
        maximum_expansion: bytes of uncompressed content that a file may hold for each of its own bytes; a
            gigabyte more is always allowed.
    """

    maximum_import: _Bytes = 1 << 40
    maximum_expansion: _Factor = 1024
