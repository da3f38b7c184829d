"""Rich text, as word processors of old exchange it."""

from __future__ import annotations

from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.shapes import text_members

__all__ = ["RtfParser"]


class RtfParser(Parser):
    """The text without its formatting."""

    name = "rtf"
    content_types = frozenset({"application/rtf", "text/rtf", "application/x-rtf"})
    extensions = frozenset({"rtf"})

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``text``."""
        from striprtf.striprtf import rtf_to_text

        data = content.read()
        if not data.lstrip().startswith(b"{\\rtf"):
            raise ValueError("it does not begin as rich text does")
        text: str = rtf_to_text(data.decode("latin-1"), errors="replace")  # type: ignore[no-untyped-call]
        return text_members([text.strip()])
