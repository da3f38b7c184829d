"""Rows as people and spreadsheets read them. What a file holds never reaches a terminal as it is."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from svc_cli import print_table, terminal_text, time_text

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["cell_text", "columns_of", "has_colours", "print_csv", "print_lines", "print_rows"]

Document = dict[str, Any]

_TIMES = frozenset(("created_at", "updated_at", "@created_at", "@updated_at"))
_MOST_SHOWN = 100


def has_colours() -> bool:
    """Whether standard output is a terminal that shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def print_rows(columns: Sequence[str], rows: Iterable[Document]) -> None:
    """Prints a table: with a heading and colours in a terminal, plain columns elsewhere."""
    found = list(rows)
    if not found:
        return
    if not has_colours():
        # Whoever reads lines gets lines: values are not cut.
        print_table([[cell_text(name, row.get(name)) for name in columns] for row in found])
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        numeric = all(_is_number(row.get(name)) for row in found) and name not in _TIMES
        style = "cyan" if name == "path" else "green" if name == "score" else None
        table.add_column(Text(terminal_text(name)), justify="right" if numeric else "left", style=style)
    for row in found:
        table.add_row(*(Text(_cut(cell_text(name, row.get(name)))) for name in columns))
    _console_print(table)


def print_csv(columns: Sequence[str], rows: Iterable[Document]) -> None:
    """Prints rows as CSV with a heading; lists and objects in a cell are JSON."""
    in_terminal = sys.stdout.isatty()
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = [_plain_cell(row.get(name)) for name in columns]
        writer.writerow([terminal_text(cell) for cell in cells] if in_terminal else cells)
        if buffer.tell() > 1 << 16:
            sys.stdout.write(buffer.getvalue())
            buffer.seek(0)
            buffer.truncate()
    # click would take what looks like a colour out of the data.
    sys.stdout.write(buffer.getvalue())


def print_lines(lines: Iterable[Text]) -> None:
    """Prints lines with their styles; without them where there are no colours."""
    if not has_colours():
        for line in lines:
            click.echo(line.plain)
        return
    for line in lines:
        _console_print(line)


def cell_text(name: str, value: Any) -> str:
    """Returns a value as a person reads it, on one line and safe for a terminal."""
    if value is None:
        return "-"
    if name in _TIMES and isinstance(value, int):
        return time_text(value)
    if name in ("score", "@score") and isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return terminal_text(", ".join(value))
    return terminal_text(_plain_cell(value))


def _plain_cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def _console_print(what: Any) -> None:
    from rich.console import Console

    # Neither markup nor emoji codes: what is shown was stored by anybody.
    Console(markup=False, emoji=False, highlight=False).print(what, soft_wrap=not hasattr(what, "columns"))


def columns_of(rows: Sequence[Document]) -> Iterator[str]:
    """Yields the members that rows have, in the order in which they come up."""
    seen: dict[str, None] = {}
    for row in rows:
        seen.update(dict.fromkeys(row))
    yield from seen
