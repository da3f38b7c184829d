"""A table of lines of JSON. What a stranger has stored may be anything, so every size is bounded."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, NamedTuple

__all__ = ["Table", "table_of"]

MOST_COLUMNS = 20
MOST_CELL = 200


class Table(NamedTuple):
    """Rows of a file.

    Attributes:
        columns: names of members, in the order in which they appear.
        rows: texts by column; a line that is no object has one text.
        has_more: whether the file goes on.
    """

    columns: list[str]
    rows: list[list[str]]
    has_more: bool


def table_of(content: bytes, most: int, *, is_whole: bool) -> Table:
    """Returns a table of the first lines.

    Args:
        content: the beginning of a file.
        most: rows at most.
        is_whole: whether that is all of it; else the last line may be cut, and is left out.
    """
    lines = [line for line in content.decode("utf-8", "replace").split("\n") if line.strip()]
    if not is_whole:
        lines = lines[:-1]
    values = [_value(line) for line in lines[:most]]
    names = dict.fromkeys(name for value in values if isinstance(value, dict) for name in value)
    columns = list(islice(names, MOST_COLUMNS))
    rows = [
        [_text(value[name]) if name in value else "" for name in columns]
        if isinstance(value, dict)
        else [_text(value)]
        for value in values
    ]
    return Table(columns, rows, not is_whole or len(lines) > most)


def _value(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_CELL else f"{text[:MOST_CELL]}…"
