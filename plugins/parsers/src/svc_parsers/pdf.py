"""PDF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.shapes import MAXIMUM_TEXT, bare_text, text_members, without_empty

__all__ = ["PdfParser"]

_MAXIMUM_PAGES = 20_000
_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?|(Z))?")


class PdfParser(Parser):
    """The text of each page, as far as it is text and not a picture, and what the file says of itself."""

    name = "pdf"
    content_types = frozenset({"application/pdf", "application/x-pdf"})
    extensions = frozenset({"pdf"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns ``title``, ``author``, further metadata, ``page_count``, ``pages`` and ``text``."""
        import pypdfium2  # type: ignore[import-untyped]

        try:
            document = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError as error:
            raise ValueError(str(error)) from error
        try:
            # Some programs end these with NUL characters.
            told = {
                name: bare_text(value) for name, value in document.get_metadata_dict(skip_empty=True).items()
            }
            pages = list(_texts(document))
            members = {
                "title": told.get("Title"),
                "author": told.get("Author"),
                "subject": told.get("Subject"),
                "keywords": told.get("Keywords"),
                "creator": told.get("Creator"),
                "producer": told.get("Producer"),
                "created": _date(told.get("CreationDate", "")),
                "modified": _date(told.get("ModDate", "")),
            }
            count = len(document)
            text = text_members([page or "" for page in pages], "\n\n")
            if len(pages) < count:
                text["truncated"] = True
            shown = [page or "" for page in pages]
            document_told = {**without_empty(members), "page_count": count, "pages": shown, **text}
            torn = pages.count(None)
            return InPart(document_told, f"{torn:,} of its pages are torn") if torn else document_told
        finally:
            document.close()


def _texts(document: Any) -> Iterator[str | None]:
    """The text of each page, until there is more than anybody keeps; None of one that is torn."""
    left = MAXIMUM_TEXT
    for number in range(min(len(document), _MAXIMUM_PAGES)):
        if left <= 0:
            return
        text = _text_of_page(document, number)
        left -= len(text or "")
        yield text if text is None else text[: left + len(text)]


def _text_of_page(document: Any, number: int) -> str | None:
    import pypdfium2

    try:
        page = document[number]
        try:
            text: str = page.get_textpage().get_text_bounded()
        finally:
            page.close()
    except pypdfium2.PdfiumError:
        return None
    return text.replace("\r\n", "\n").replace("\x02", "").replace("\0", "").strip()


def _date(text: str) -> str | None:
    """A date of PDF as ISO 8601; None where it is none."""
    found = _DATE.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, sign, hours, minutes, utc = found.groups()
    shown = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}"
    if sign:
        return f"{shown}{sign}{hours}:{minutes or '00'}"
    return shown + ("+00:00" if utc else "")
