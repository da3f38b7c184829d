"""Texts and presentations of OpenDocument."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from itertools import chain
from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.shapes import built_as, check_archive, text_members, without_empty

__all__ = ["OpenDocumentParser"]

_MAXIMUM_HEADINGS = 10_000
_PARAGRAPHS = "descendant::text:h|descendant::text:p"
_OF_PAGES = "|".join(
    f"descendant::style:{place}/descendant::text:p"
    for place in ("header", "header-left", "header-first", "footer", "footer-left", "footer-first")
)
"""Headers and footers of the pages, which stand with the styles."""


class OpenDocumentParser(Parser):
    """Paragraphs in their order, and the headings among them. Spreadsheets are read by ``spreadsheet``."""

    name = "opendocument"
    content_types = frozenset(
        {
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.text-template",
            "application/vnd.oasis.opendocument.presentation",
        }
    )
    extensions = frozenset({"odt", "ott", "odp"})

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``title``, ``author``, further metadata, ``headings`` and ``text``."""
        from odfdo import Document

        with built_as("a document of OpenDocument"):
            return self._read(Document, content)

    @staticmethod
    def _read(open_document: Any, content: BinaryIO) -> dict[str, Any]:
        check_archive(content)
        document = open_document(BytesIO(content.read()))
        told = document.meta
        headings = [
            {"level": item.get_attribute_integer("text:outline-level") or 1, "text": text}
            for item in document.body.get_elements("descendant::text:h")[:_MAXIMUM_HEADINGS]
            if (text := item.text_recursive.strip())
        ]
        members = {
            "title": told.title or (headings[0]["text"] if headings else None),
            "author": told.creator,
            "subject": told.subject,
            "keywords": told.keyword,
            "comments": told.get_comments(),
            "language": told.language,
            "created": told.creation_date,
            "modified": told.date,
            "headings": headings,
        }
        texts = (
            text
            for item in chain(document.body.get_elements(_PARAGRAPHS), _of_pages(document))
            if (text := item.text_recursive.strip())
        )
        return {**without_empty(members), **text_members(texts)}


def _of_pages(document: Any) -> list[Any]:
    """The paragraphs of headers and footers; none where the file has no part of styles."""
    with suppress(ValueError):
        found: list[Any] = document.get_part("styles.xml").root.get_elements(_OF_PAGES)
        return found
    return []
