"""The index types that the driver keeps for itself; no configuration names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from svc_query.api import TermIndexType, Value

__all__ = ["PRESENCE", "PresenceIndexType", "presence_term"]

PRESENCE = "presence"
"""Name of the index type that knows which documents have a field."""


class PresenceIndexType(TermIndexType):
    """Which documents have a field; one index for all fields, whose terms are their names."""

    name = PRESENCE
    format = 1

    def terms(self, value: Value, options: Mapping[str, Any]) -> Iterable[bytes]:
        """Gives nothing: the terms are names of fields, not values."""
        del value, options
        return ()


def presence_term(field: str) -> bytes:
    """Returns the term that stands for a field."""
    return field.encode()
