"""JSON, and JSON lines."""

from __future__ import annotations

import codecs
import json
from typing import Any, BinaryIO

import msgspec
from svc_query.api import Parser, ParserInput

__all__ = ["JsonLinesParser", "JsonParser"]

_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class JsonParser(Parser):
    """The document as it is: any value of JSON, in UTF-8, UTF-16 or UTF-32."""

    name = "json"
    content_types = frozenset({"application/json", "text/json", "application/*+json"})
    extensions = frozenset({"json", "geojson", "webmanifest", "ipynb", "har"})
    in_process = True

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns the value of the file; a file without one is an error."""
        return _decode(content.read())


class JsonLinesParser(Parser):
    """A list of the values, one of each line; empty lines do not count."""

    name = "json-lines"
    content_types = frozenset(
        {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq"}
    )
    extensions = frozenset({"jsonl", "ndjson", "jsonlines"})
    in_process = True

    def parse(self, content: BinaryIO, source: ParserInput) -> list[Any]:
        """Returns the values; the first line that is not JSON is named."""
        values = []
        for number, line in enumerate(content.read().split(b"\n"), 1):
            text = line.strip(b"\x1e \t\r")
            if not text:
                continue
            try:
                values.append(_decode(text))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
        return values


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        # The usual file is UTF-8 without a mark, so the others may cost a second look.
        if not content.startswith(_BYTE_ORDER_MARKS) and b"\0" not in content[:4]:
            raise
    encoding = json.detect_encoding(content)
    return msgspec.json.decode(content.decode(encoding).removeprefix("\ufeff").encode("utf-8"))
