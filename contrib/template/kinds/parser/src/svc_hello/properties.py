"""The parser ``properties``."""

from __future__ import annotations

from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

__all__ = ["PropertiesParser"]


class PropertiesParser(Parser):
    """Lines such as ``color = red``, as one object."""

    name = "properties"
    extensions = frozenset({"properties"})

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns the values by their keys. What it raises, who reads the index status sees."""
        lines = [line.strip() for line in content.read().decode("utf-8").splitlines()]
        pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
        if not all(separator for _, separator, _ in pairs):
            raise ValueError("a line has no '='")
        return {key.strip(): value.strip() for key, _, value in pairs}
