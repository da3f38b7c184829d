"""What is wrong with a filter's text, and where."""

from __future__ import annotations

import unicodedata

from svc.errors import InvalidInput

__all__ = ["FilterSyntaxError"]

_SHOWN = 72
_BEFORE = 48


class FilterSyntaxError(InvalidInput):
    """A filter's text that can't be read.

    Attributes:
        text: the whole text.
        position: where it went wrong.
    """

    def __init__(self, message: str, text: str, position: int) -> None:
        super().__init__(message, position=position)
        self.text = text
        self.position = position

    def pointed(self) -> str:
        """Returns the message, below it the line of the text, and below that a caret at the place."""
        start = self.text.rfind("\n", 0, self.position) + 1
        end = self.text.find("\n", start)
        line = self.text[start : len(self.text) if end < 0 else end]
        place = self.position - start
        if place > _BEFORE:
            cut = place - _BEFORE
            line, place = "..." + line[cut:], _BEFORE + 3
        if len(line) > place + _SHOWN - _BEFORE:
            line = line[: place + _SHOWN - _BEFORE] + "..."
        shown = "".join(one if one.isprintable() else "?" for one in line)
        return f"{self.message}\n  {shown}\n  {' ' * _cells(shown[:place])}^"


def _cells(text: str) -> int:
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )
