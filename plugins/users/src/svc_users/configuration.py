"""The settings of the plugin: the limits of its routes, each with its default."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["UsersConfiguration"]

_Bytes = Annotated[int, msgspec.Meta(ge=1024, le=1 << 30)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class UsersConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the routes of users, groups and grants.

    Attributes:
        maximum_json: bytes of a JSON body.
        maximum_members: user ids that one request adds to a group, removes from it, or puts in their place.
        scanned: records that a page of a filtered list looks at; it ends there, and says that more follows.
    """

    maximum_json: _Bytes = 1024 * 1024
    maximum_members: _Count = 1_000
    scanned: _Count = 10_000
