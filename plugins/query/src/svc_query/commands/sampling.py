"""Choosing some files of many, and reading them."""

from __future__ import annotations

import json
import random
from typing import Any, Generic, TypeVar

from svc.plugin import Path

__all__ = ["MAXIMUM_SAMPLE", "Spread", "parse_plainly"]

T = TypeVar("T")

MAXIMUM_SAMPLE = 1 << 20
"""Bytes of a file that is read to see what is in it."""

_SEED = 1


class Spread(Generic[T]):
    """Keeps so many of the items that it is given, each with the same chance; the same ones each time."""

    def __init__(self, count: int) -> None:
        self.items: list[T] = []
        self._count = count
        self._seen = 0
        self._random = random.Random(_SEED)

    def add(self, item: T) -> None:
        """Takes the next item."""
        self._seen += 1
        if len(self.items) < self._count:
            self.items.append(item)
            return
        place = self._random.randrange(self._seen)
        if place < self._count:
            self.items[place] = item


def parse_plainly(path: Path, content_type: str | None, content: bytes) -> Any:
    """Returns the document of a JSON file, or of plain text, without any parser; None for others."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    name = path[-1].lower() if path else ""
    try:
        if kind == "application/json" or kind.endswith("+json") or name.endswith(".json"):
            return json.loads(content)
        if kind.startswith("text/plain") or name.endswith((".txt", ".md")):
            return {"text": content.decode("utf-8")}
    except (ValueError, RecursionError):
        return None
    return None
