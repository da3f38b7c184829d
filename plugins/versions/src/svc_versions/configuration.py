"""The settings of the plugin: every limit of its routes, each with its default."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["VersionsConfiguration"]

_KIB = 1024

_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class VersionsConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the version routes.

    Attributes:
        maximum_json: bytes of a JSON body.
        maximum_metadata: bytes of a snapshot's metadata as JSON.
        conflicts_listed: conflicts that a refused merge lists; all of them are counted.
        merge_nodes: directory nodes that a merge looks at, one as often as it is met: each directory that
            both sides changed has at least one.
    """

    maximum_json: _Bytes = 1024 * _KIB
    maximum_metadata: _Bytes = 64 * _KIB
    conflicts_listed: _Count = 1_000
    merge_nodes: Annotated[int, msgspec.Meta(ge=1_000, le=1 << 40)] = 500_000
