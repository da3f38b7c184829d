"""The index type ``exact``: one term for each value, in the order of the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from svc_query.api import TermIndexType, Value

from svc_index_exact.encoding import encode_value

__all__ = ["ExactIndex"]


class ExactIndex(TermIndexType):
    """Equality, ranges and order over values of any kind."""

    name: ClassVar[str] = "exact"
    format: ClassVar[int] = 1
    ordered: ClassVar[bool] = True

    def terms(self, value: Value, options: Mapping[str, Any]) -> tuple[bytes]:
        """Returns the term of a value."""
        return (encode_value(value),)
