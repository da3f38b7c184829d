"""What the streams of events take."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["EventQuery"]


class EventQuery(Struct, frozen=True, kw_only=True):
    """Which events a stream has."""

    events: Annotated[str | None, Meta(description="Types, separated by commas; by default all.")] = None
    path_prefix: Annotated[str | None, Meta(description="Only events with a path that begins so.")] = None
    last_event_id: Annotated[
        str | None, Meta(description="As the header field Last-Event-ID, for those who can't set it.")
    ] = None
    follow: Annotated[bool, Meta(description="Whether it goes on when it has sent all events.")] = True
