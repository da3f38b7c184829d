"""A snippet of a text with what was found in it marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from svc_cli import terminal_text

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["marked"]

_MARK = "bold yellow"
_BLANKS = re.compile(r"\s+")


def marked(snippet: str, highlights: Iterable[Sequence[int]]) -> Text:
    """Returns a snippet on one line, safe for a terminal, its marked parts in a colour of their own."""
    from rich.text import Text

    line = Text()
    end = 0
    for start, stop in sorted((one[0], one[1]) for one in highlights):
        if start < end or stop > len(snippet):
            continue
        line.append(_shown(snippet[end:start]))
        line.append(_shown(snippet[start:stop]), style=_MARK)
        end = stop
    line.append(_shown(snippet[end:]))
    return line


def _shown(text: str) -> str:
    return terminal_text(_BLANKS.sub(" ", text))
