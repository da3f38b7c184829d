"""JSON, and JSON lines."""

from __future__ import annotations

import codecs
import io
import json
from contextlib import suppress
from typing import Any, BinaryIO

import msgspec
from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.encodings import Text, read_text

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
        encoded = content.read()
        try:
            return _decode(encoded)
        except ValueError:
            value = _with_halves(encoded)
            if value is not None:
                return InPart(value, "half of a surrogate pair in it stands for no character")
            other = _in_utf8(encoded, source)
            if other is None:
                raise
            return other.told(_decode(other.text.encode()))


class JsonLinesParser(Parser):
    """A list of the values, one of each line; empty lines do not count."""

    name = "json-lines"
    content_types = frozenset(
        {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq"}
    )
    extensions = frozenset({"jsonl", "ndjson", "jsonlines"})
    in_process = True

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns the values; lines that are not JSON are left out, and the first one is named."""
        values = []
        wrong: list[str] = []
        encoded = content.read()
        other = _in_utf8(encoded, source)
        lines = encoded.split(b"\n") if other is None else other.text.encode().split(b"\n")
        for number, line in enumerate(lines, 1):
            text = line.strip(b"\x1e \t\r")
            if not text:
                continue
            try:
                values.append(_decode(text))
            except ValueError as error:
                wrong.append(f"line {number}: {error}")
        if wrong and not values:
            raise ValueError(wrong[0])
        told = InPart(values, f"{len(wrong)} of its lines are left out, {wrong[0]}") if wrong else values
        return told if other is None else other.told(told)


def _in_utf8(content: bytes, source: ParserInput) -> Text | None:
    """The text of a file that is not UTF-8, as JSON should be; None where it is, or is no text."""
    try:
        content.decode()
    except UnicodeDecodeError:
        with suppress(ValueError):
            return read_text(io.BytesIO(content), source)
    return None


def _with_halves(content: bytes) -> Any:
    """A document whose texts hold halves of surrogate pairs, which only Python's own library reads."""
    if b"\\u" not in content:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        # The usual file is UTF-8 without a mark, so the others may cost a second look.
        if not content.startswith(_BYTE_ORDER_MARKS) and b"\0" not in content[:4]:
            raise
    encoding = json.detect_encoding(content)
    return msgspec.json.decode(content.decode(encoding).removeprefix("\ufeff").encode("utf-8"))
