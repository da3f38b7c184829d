"""A snippet of a text with what was found in it marked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from svc.plugin import terminal_text

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["marked"]

_MARK = "bold yellow"
_BLANKS = re.compile(r"\s+")


def marked(snippet: Any) -> Text:
    """Returns a snippet on one line, safe for a terminal, its marked parts in a colour of their own.

    Args:
        snippet: ``{"text": ..., "highlights": [[start, end], ...]}``, places in characters.
    """
    from rich.text import Text

    text, places = snippet["text"], snippet.get("highlights") or ()
    line = Text()
    end = 0
    for start, stop in sorted(map(tuple, places)):
        if start < end or stop > len(text):
            continue
        line.append(_shown(text[end:start]))
        line.append(_shown(text[start:stop]), style=_MARK)
        end = stop
    line.append(_shown(text[end:]))
    return line


def _shown(text: str) -> str:
    return terminal_text(_BLANKS.sub(" ", text))
