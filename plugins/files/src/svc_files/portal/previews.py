"""Previews of files: text, JSON and tables from a bounded part of them, media by the browser."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Preview, PreviewedFile

from svc_files.portal.json_tree import tree_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["PREVIEWS", "TextPreview"]

MOST_TEXT = 256 * 1024
MOST_JSON = 256 * 1024
"""Bytes that are decoded in the event loop: 10 ms at worst."""
MOST_ROWS = 200
MOST_COLUMNS = 50
MOST_CELL = 500


class _Media(Preview):
    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """The browser loads it by itself, a film by ranges."""
        return {"file": file}


class ImagePreview(_Media):
    """Pictures; an SVG is one too: in ``img`` it runs nothing."""

    name: ClassVar[str] = "files.image"
    content_types: ClassVar[tuple[str, ...]] = (
        *("image/avif", "image/gif", "image/jpeg", "image/png", "image/svg+xml", "image/webp", "image/bmp"),
    )
    template: ClassVar[str] = "image.html"


class AudioPreview(_Media):
    """Sound."""

    name: ClassVar[str] = "files.audio"
    content_types: ClassVar[tuple[str, ...]] = ("audio/*",)
    template: ClassVar[str] = "audio.html"


class VideoPreview(_Media):
    """Films."""

    name: ClassVar[str] = "files.video"
    content_types: ClassVar[tuple[str, ...]] = ("video/*",)
    template: ClassVar[str] = "video.html"


class PdfPreview(_Media):
    """PDF, by the viewer of the browser."""

    name: ClassVar[str] = "files.pdf"
    content_types: ClassVar[tuple[str, ...]] = ("application/pdf",)
    template: ClassVar[str] = "pdf.html"


class TextPreview(Preview):
    """Text, as it is."""

    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """Its beginning."""
        content = file.read(MOST_TEXT)
        return {"text": content.decode("utf-8", "replace"), "is_whole": file.size <= len(content)}


class JsonPreview(TextPreview):
    """JSON as a tree, and each member on a line of its own; as it is where it is large, or no JSON."""

    name: ClassVar[str] = "files.json"
    content_types: ClassVar[tuple[str, ...]] = ("application/json",)
    template: ClassVar[str] = "tree.html"

    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """The whole document."""
        tree, is_whole = None, True
        values: dict[str, Any] = {"html": ""}
        if file.size <= MOST_JSON:
            try:
                document = json.loads(file.read(file.size))
                values |= _indented(document)
                tree, is_whole = tree_of(document)
            except (ValueError, RecursionError):
                values |= super().values(request, file) or {}
        else:
            values |= super().values(request, file) or {}
        return {**values, "tree": tree, "tree_is_whole": is_whole}


def _indented(document: Any) -> dict[str, Any]:
    """The text with a member on each line, and whether it is all: deep ones have more blanks than bytes."""
    pieces: list[str] = []
    left = MOST_TEXT
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(document):
        pieces.append(piece[:left])
        left -= len(piece)
        if left < 0:
            break
    return {"text": "".join(pieces), "is_whole": left >= 0}


class TablePreview(Preview):
    """CSV and TSV, as a table."""

    name: ClassVar[str] = "files.table"
    content_types: ClassVar[tuple[str, ...]] = ("text/csv", "text/tab-separated-values")
    template: ClassVar[str] = "table.html"

    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """Its first rows."""
        content = file.read(MOST_TEXT)
        text = content.decode("utf-8-sig", "replace")
        cut = file.size > len(content)
        if cut:
            text = text[: text.rfind("\n") + 1]  # the last line may be a part of one
        delimiter = "\t" if file.content_type == "text/tab-separated-values" else _delimiter_of(text)
        rows: list[list[str]] = []
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            rows.extend(
                [cell[:MOST_CELL] for cell in row[:MOST_COLUMNS]] for row in islice(reader, MOST_ROWS + 1)
            )
        except csv.Error:
            cut = True
        if not rows:
            return None
        width = max(map(len, rows))
        rows = [row + [""] * (width - len(row)) for row in rows]
        return {"head": rows[0], "rows": rows[1:], "is_whole": not cut and len(rows) <= MOST_ROWS}


def _delimiter_of(text: str) -> str:
    line = text.partition("\n")[0]
    return max(",;\t", key=line.count)


PREVIEWS: tuple[type[Preview], ...] = (
    ImagePreview,
    AudioPreview,
    VideoPreview,
    PdfPreview,
    JsonPreview,
    TablePreview,
)
