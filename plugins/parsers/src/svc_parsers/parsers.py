"""All parsers of the plugin. What two of them could read is read by the one that comes first."""

from __future__ import annotations

from svc_query.api import Parser

from svc_parsers.json_documents import JsonLinesParser, JsonParser

__all__ = ["PARSERS"]

PARSERS: tuple[type[Parser], ...] = (JsonParser, JsonLinesParser)
