"""XML, without entities and without anything that is elsewhere."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from typing import Any, BinaryIO

from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.encodings import Text, read_text
from svc_parsers.shapes import text_members, without_empty

__all__ = ["XmlParser"]

_HEAD = 200
_TAG = re.compile(r"<[^<>]*>?")
_OTHER_ENCODING = re.compile(
    rb"""\xfe\xff|\xff\xfe|.?<\0|<\?xml[^>]*\sencoding=["'](?!utf-?8["'])""", re.IGNORECASE | re.DOTALL
)
"""A beginning by which an XML parser knows another encoding than UTF-8."""
_MAXIMUM_DEPTH = 90
_MAXIMUM_ELEMENTS = 250_000


class XmlParser(Parser):
    """The elements as dictionaries and lists. A file that declares entities is refused.

    An element that has neither attributes nor children is its text, or null. Any other is a dictionary:
    attributes as ``@name``, text of its own as ``#text``, children by their name without the namespace; a
    list where several have the same name.
    """

    name = "xml"
    content_types = frozenset({"application/xml", "text/xml", "application/*+xml", "image/svg+xml"})
    extensions = frozenset({"xml", "svg", "rss", "atom", "gpx", "kml", "xsd", "xsl", "opml", "fb2"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns ``root``, ``title``, ``text`` and ``content``."""
        from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
        from defusedxml.ElementTree import ParseError, parse  # type: ignore[import-untyped]

        text = _text_of(content, source)
        try:
            tree = parse(
                content if text is None else io.BytesIO(text.text.encode()),
                forbid_dtd=False,
                forbid_entities=True,
                forbid_external=True,
            )
        except ParseError as error:
            reason = f"it is not well-formed: {error}"
            content.seek(0)
            words = _words_without_tags(text or read_text(content, source))
            if not words:
                raise ValueError(reason) from error
            document = text_members([words])
            return InPart(document, reason) if text is None else text.told(InPart(document, reason))
        except DefusedXmlException as error:
            raise ValueError(
                "it declares entities, or names something elsewhere, which is not followed"
            ) from error
        root = tree.getroot()
        reason, value = "", None
        try:
            value = _mapping(root)
        except ValueError as error:
            reason = str(error)
        title = next(
            (words for node in root.iter() if _name(node) == "title" and (words := _words(node))), None
        )
        texts = (line for text in root.itertext() if (line := text.strip()))
        document = without_empty({"root": _name(root), "title": title, "content": value}) | text_members(
            texts
        )
        if reason and not document["text"]:
            raise ValueError(reason)
        told = InPart(document, reason) if reason else document
        return told if text is None else text.told(told)


def _words_without_tags(text: Text) -> str:
    """What can be read of a file that is torn, or is no XML at all: then nothing."""
    if not text.text.lstrip().startswith("<"):
        return ""
    return "\n".join(line for raw in _TAG.split(text.text) if (line := raw.strip()))


def _text_of(content: BinaryIO, source: ParserInput) -> Text | None:
    """The text of a file that is neither in the encoding that it names nor, where it names none, in UTF-8."""
    if _OTHER_ENCODING.match(content.read(_HEAD)) is None:
        content.seek(0)
        try:
            content.read().decode()
        except UnicodeDecodeError:
            content.seek(0)
            with suppress(ValueError):
                return read_text(content, source)
    content.seek(0)
    return None


def _mapping(root: Any) -> Any:
    """Children before parents, without recursion: a file may nest as deep as it likes."""
    values: dict[int, Any] = {}
    stack = [(root, 0, False)]
    count = 0
    while stack:
        element, depth, seen = stack.pop()
        if seen:
            values[id(element)] = _value(element, values)
            continue
        count += 1
        if depth > _MAXIMUM_DEPTH:
            raise ValueError(f"it nests more than {_MAXIMUM_DEPTH} levels deep")
        if count > _MAXIMUM_ELEMENTS:
            raise ValueError(f"it has more than {_MAXIMUM_ELEMENTS:,} elements")
        stack.append((element, depth, True))
        stack.extend((child, depth + 1, False) for child in element)
    return values[id(root)]


def _value(element: Any, values: dict[int, Any]) -> Any:
    texts = [element.text, *(child.tail for child in element)]
    text = " ".join(part for raw in texts if raw and (part := raw.strip()))
    if not element.attrib and not len(element):
        return text or None
    found: dict[str, Any] = {f"@{_local(name)}": value for name, value in element.attrib.items()}
    if text:
        found["#text"] = text
    several: set[str] = set()
    for child in element:
        name, value = _name(child), values.pop(id(child))
        if name in several:
            found[name].append(value)
        elif name in found:
            found[name] = [found[name], value]
            several.add(name)
        else:
            found[name] = value
    return found


def _name(element: Any) -> str:
    return _local(element.tag) if isinstance(element.tag, str) else ""


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _words(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())
