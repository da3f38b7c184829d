"""Text of any kind that nothing else reads."""

from __future__ import annotations

from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.encodings import read_text
from svc_parsers.shapes import text_members

__all__ = ["TextParser"]


class TextParser(Parser):
    """The text, in whatever encoding it is, and how many lines it has."""

    name = "text"
    content_types = frozenset({"text/plain", "text/*"})
    extensions = frozenset({"txt", "text", "log", "rst", "adoc", "asc", "nfo", "srt", "vtt", "tex", "org"})
    in_process = True

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns ``text``, ``lines`` and ``encoding``."""
        found = read_text(content, source)
        text = found.text
        lines = text.count("\n") + (not text.endswith("\n") and text != "")
        return found.told({**text_members([text]), "lines": lines, "encoding": found.encoding})
