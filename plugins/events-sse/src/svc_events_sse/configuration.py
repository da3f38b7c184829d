"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["SseConfiguration"]


class SseConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of event streams.

    Attributes:
        maximum_streams: most streams that one worker has open at once.
        replay_commits: how many commits a client that comes back is given at most.
    """

    maximum_streams: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 5_000
    replay_commits: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] = 1_000_000
