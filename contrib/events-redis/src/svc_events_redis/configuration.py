"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

import msgspec

from svc.plugin import Secret

__all__ = ["RedisConfiguration"]


class RedisConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where events go to.

    Attributes:
        url: the server, with a password if it wants one.
        stream: the key of the stream.
        maximum_length: about how many entries the stream keeps.
        path_prefix: only events with a path that begins so.
    """

    url: Secret = Secret("redis://localhost:6379/0")
    stream: str = "svc:events"
    maximum_length: Annotated[int, msgspec.Meta(ge=1)] = 1_000_000
    path_prefix: str | None = None
