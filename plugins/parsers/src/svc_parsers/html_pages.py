"""HTML pages."""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.encodings import read_text
from svc_parsers.shapes import text_members, without_empty

__all__ = ["HtmlParser", "text_of_html"]

_MAXIMUM_ITEMS = 10_000
_INVISIBLE = ["script", "style", "noscript", "template", "svg", "head"]
_BLOCKS = (
    "address, article, aside, blockquote, br, caption, dd, div, dl, dt, figcaption, figure, footer, form, h1,"
    " h2, h3, h4, h5, h6, header, hr, li, main, nav, ol, option, p, pre, section, table, td, th, tr, ul"
)
_HEAD = 1024
"""Bytes within which a page says its encoding."""
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:+-]{1,40})""", re.IGNORECASE)
_LEVELS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}


class HtmlParser(Parser):
    """What a reader sees, and what the page says of itself. Scripts do not run, nothing is fetched."""

    name = "html"
    content_types = frozenset({"text/html", "application/xhtml+xml"})
    extensions = frozenset({"html", "htm", "xhtml"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns ``title``, ``language``, ``description``, ``meta``, ``headings``, ``links``, ``text``."""
        stated = _CHARSET.search(content.read(_HEAD))
        content.seek(0)
        page = read_text(content, source, stated[1].decode("ascii") if stated else None)
        tree = _tree(page.text)
        title = tree.css_first("head title, title")
        root = tree.root
        meta = _meta(tree)
        headings = [
            {"level": _LEVELS[node.tag], "text": text}
            for node in tree.css(", ".join(_LEVELS))[:_MAXIMUM_ITEMS]
            if (text := _line(node.text()))
        ]
        links = [
            without_empty({"href": node.attributes.get("href"), "text": _line(node.text())})
            for node in tree.css("a[href]")[:_MAXIMUM_ITEMS]
        ]
        members = {
            "title": _line(title.text()) if title is not None else None,
            "language": root.attributes.get("lang") if root is not None else None,
            "description": meta.get("description") or meta.get("og:description"),
            "meta": meta,
            "headings": headings,
            "links": links,
        }
        return page.told({**without_empty(members), **text_members([_visible(tree)])})


def text_of_html(text: str) -> str:
    """Returns what a reader of a page sees."""
    return _visible(_tree(text))


def _tree(text: str) -> Any:
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(text)


def _visible(tree: Any) -> str:
    tree.strip_tags(_INVISIBLE)
    body = tree.body
    if body is None:
        return ""
    for node in body.css(_BLOCKS):
        # Words of one block stay together, and those of two do not run into each other.
        node.insert_before("\n")
        node.insert_after("\n")
    text = body.text()
    return "\n".join(line for raw in text.split("\n") if (line := _line(raw)))


def _meta(tree: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in tree.css("meta[content]")[:_MAXIMUM_ITEMS]:
        name = node.attributes.get("name") or node.attributes.get("property")
        value = node.attributes.get("content")
        if name and value:
            found.setdefault(name.lower(), value)
    return found


def _line(text: str) -> str:
    return " ".join(text.split())
