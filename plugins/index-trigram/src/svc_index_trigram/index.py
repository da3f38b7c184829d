"""The index type ``trigram``: every three bytes of a text, and its words."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

from svc_query.api import TermIndexType, Value

from svc_index_trigram.folding import text_terms

__all__ = ["TrigramIndex"]


class TrigramIndex(TermIndexType):
    """Substrings, similar and misspelt texts of any script."""

    name: ClassVar[str] = "trigram"
    format: ClassVar[int] = 1

    def terms(self, value: Value, options: Mapping[str, Any]) -> AbstractSet[bytes]:
        """Returns the terms of a text; other values have none."""
        return text_terms(value) if isinstance(value, str) else frozenset()
