"""TOML."""

from __future__ import annotations

import tomllib
from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.encodings import read_text

__all__ = ["TomlParser"]


class TomlParser(Parser):
    """The document as it is; dates and times become ISO 8601."""

    name = "toml"
    content_types = frozenset({"application/toml", "text/x-toml", "text/toml"})
    extensions = frozenset({"toml"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns the table of the file, which TOML wants in UTF-8."""
        found = read_text(content, source)
        return found.told(tomllib.loads(found.text))
