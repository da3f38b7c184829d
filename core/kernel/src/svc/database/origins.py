"""Where a change comes from that was made on another node first, as the log says it.

A transaction that brings such changes is recorded in parts, one for each origin; the message of a part names
the node and the time, its actor the user. So the format of commits knows no nodes.
"""

from __future__ import annotations

import re

from msgspec import Struct

from svc.errors import InvalidInput

__all__ = ["Origin", "refuse_origin"]

_FORM = re.compile(r"merged from node ([1-9][0-9]{0,18})(?:, written at (0|[1-9][0-9]{0,15}))?")


class Origin(Struct, frozen=True):
    """Where a change was made first.

    Attributes:
        node_id: of the node.
        user: who made it (a user id); None: not known.
        time_ms: when, Unix milliseconds; None: not known.
    """

    node_id: int
    user: str | None = None
    time_ms: int | None = None

    @property
    def message(self) -> str:
        """What the log says of it."""
        written = "" if self.time_ms is None else f", written at {self.time_ms}"
        return f"merged from node {self.node_id}{written}"

    @classmethod
    def read(cls, actor: str | None, message: str | None) -> Origin | None:
        """Returns the origin that actor and message of a transaction name; None: it was made here."""
        found = None if message is None else _FORM.fullmatch(message)
        if found is None:
            return None
        return cls(int(found[1]), actor, None if found[2] is None else int(found[2]))


def refuse_origin(message: str | None) -> None:
    """Refuses a message that would look like an origin.

    Raises:
        InvalidInput: it does.
    """
    if Origin.read(None, message) is not None:
        raise InvalidInput("A message of this form says that another node made a change.", field="message")
