"""The settings of the plugin in one database."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["GcConfiguration"]


class GcConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the plugin.

    Attributes:
        keep_days: versions without a name stay readable for so many days; 0 keeps the present one.
        upload_hours: for how long chunks are kept that clients uploaded ahead, and that no file holds.
        wait_seconds: how long a collection waits for those who look at what it is about to destroy.
        safety_snapshot: whether a snapshot of HEAD is made before a collection, where the lifecycle settings
            allow it.
        safety_snapshots_kept: of those that collections made, so many stay, the newest; the retention of the
            lifecycle settings may end them sooner.
    """

    keep_days: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0
    upload_hours: Annotated[float, msgspec.Meta(ge=0, le=720)] = 24
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 60
    safety_snapshot: bool = True
    safety_snapshots_kept: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3
