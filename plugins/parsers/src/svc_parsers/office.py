"""Word and PowerPoint, as they are since 2007."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.shapes import built_as, check_archive, text_members, without_empty

__all__ = ["PresentationParser", "WordParser"]

_TOLD = ("title", "author", "subject", "keywords", "category", "comments", "language", "created", "modified")
_MAXIMUM_HEADINGS = 10_000


class WordParser(Parser):
    """Paragraphs and tables in their order, and the headings among them."""

    name = "word"
    content_types = frozenset(
        {
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
        }
    )
    extensions = frozenset({"docx"})

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``title``, ``author``, further properties, ``headings`` and ``text``."""
        import docx

        with built_as("a Word document"):
            return self._read(docx.Document, content)

    @staticmethod
    def _read(open_document: Any, content: BinaryIO) -> dict[str, Any]:
        check_archive(content)
        document = open_document(content)
        told = _properties(document.core_properties)
        headings = [
            {"level": level, "text": text}
            for level, text in (_heading(item) for item in document.paragraphs)
            if level is not None and text
        ][:_MAXIMUM_HEADINGS]
        if headings and "title" not in told:
            told["title"] = headings[0]["text"]
        return {
            **without_empty({**told, "headings": headings}),
            **text_members(chain(_blocks(document), _around(document))),
        }


_AROUND = ("header", "footer", "footnotes", "endnotes", "comments")


def _around(document: Any) -> Iterator[str]:
    """What stands beside the text: headers and footers of pages, notes and comments; each text once."""
    from docx.opc.oxml import parse_xml
    from docx.oxml.ns import qn

    seen = set()
    for relation in document.part.rels.values():
        if relation.is_external or relation.reltype.rpartition("/")[2] not in _AROUND:
            continue
        for paragraph in parse_xml(relation.target_part.blob).iter(qn("w:p")):
            text = "".join(piece.text or "" for piece in paragraph.iter(qn("w:t"))).strip()
            if text and text not in seen:
                seen.add(text)
                yield text


class PresentationParser(Parser):
    """The slides with their titles, texts and notes."""

    name = "presentation"
    content_types = frozenset(
        {
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
        }
    )
    extensions = frozenset({"pptx"})

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``title``, ``author``, further properties, ``slides`` and ``text``."""
        import pptx

        with built_as("a presentation"):
            return self._read(pptx.Presentation, content)

    @staticmethod
    def _read(open_presentation: Any, content: BinaryIO) -> dict[str, Any]:
        check_archive(content)
        presentation = open_presentation(content)
        slides = [_slide(slide) for slide in presentation.slides]
        told = _properties(presentation.core_properties)
        if "title" not in told:
            told["title"] = next((slide["title"] for slide in slides if "title" in slide), None)
        texts = (slide[name] for slide in slides for name in ("text", "notes") if name in slide)
        return {**without_empty({**told, "slides": slides}), **text_members(texts)}


def _properties(properties: Any) -> dict[str, Any]:
    found = {}
    for name in _TOLD:
        try:
            found[name] = getattr(properties, name)
        except (ValueError, AttributeError):
            continue
    return without_empty(found)


def _heading(paragraph: Any) -> tuple[int | None, str]:
    style = paragraph.style.name if paragraph.style is not None else ""
    if not style or not style.startswith(("Heading ", "Title")):
        return None, ""
    level = style.removeprefix("Heading ")
    return (int(level) if level.isdigit() else 0), paragraph.text.strip()


def _blocks(document: Any) -> Iterator[str]:
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                yield "\t".join(cell.text.strip() for cell in row.cells)
        elif block.text.strip():
            yield block.text.strip()


def _slide(slide: Any) -> dict[str, Any]:
    title = slide.shapes.title
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    texts = [text for shape in slide.shapes for text in _texts_of(shape, 0)]
    return without_empty(
        {
            "title": title.text_frame.text.strip() if title is not None else None,
            "text": "\n".join(texts),
            "notes": notes.text.strip() if notes is not None else None,
        }
    )


def _texts_of(shape: Any, depth: int) -> Iterator[str]:
    if depth < 20 and hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _texts_of(inner, depth + 1)
    elif shape.has_text_frame:
        if text := shape.text_frame.text.strip():
            yield text
    elif getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield "\t".join(cell.text.strip() for cell in row.cells)
