"""What the supervisor and the process of a task say to each other: lines of JSON through pipes."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "CANCEL",
    "MAXIMUM_JSON",
    "MAXIMUM_LINE",
    "STOP",
    "Alive",
    "Cancelled",
    "Completed",
    "Failed",
    "Logged",
    "Message",
    "Order",
    "Progressed",
    "Saved",
    "Stopped",
]

CANCEL = b"c"
"""The task was cancelled."""
STOP = b"s"
"""The run shall end, and another will go on."""

MAXIMUM_JSON = 64 * 1024
"""Bytes of a checkpoint, and of a result."""
MAXIMUM_LINE = 256 * 1024


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is to do.

    Attributes:
        parent: process id of the supervisor.
        location: path or URL of the database.
        plugin_id: the plugin that added the type.
        started_at: which run of it this is.
        configuration: the settings of the plugin, secrets revealed; None when it has none.
        memory: bytes that the child may have for its data.
        log_level: the least level that is worth to be said.
        max_tree_entries: most entries of a tree, as the server was told.
    """

    parent: int
    location: str
    plugin_id: str
    task_type: str
    task_id: str
    started_at: int
    configuration: Any = None
    memory: int = 2 << 30
    log_level: int = 20
    max_tree_entries: int


class Message(msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower):
    """What a child says."""


class Alive(Message, frozen=True):
    """It works."""


class Progressed(Message, frozen=True):
    """How far it is; see ``TaskProgress``."""

    done: int
    total: int
    eta_ms: int | None = None
    message: str | None = None


class Saved(Message, frozen=True):
    """A checkpoint is durable."""


class Logged(Message, frozen=True):
    """A line for the log."""

    level: int
    name: str
    text: str


class Completed(Message, frozen=True):
    """The run has returned."""

    result: Any = None


class Failed(Message, frozen=True):
    """The run has raised."""

    error: str
    trace: str = ""


class Cancelled(Message, frozen=True):
    """The run has ended because the task was cancelled."""


class Stopped(Message, frozen=True):
    """The run has ended because it was told to."""
