"""Tables as text: CSV, TSV and their kin."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.encodings import read_text
from svc_parsers.shapes import MAXIMUM_CELLS, column_names, row_of

__all__ = ["CsvParser"]

_DELIMITERS = ",;\t|"
_SAMPLE = 64 * 1024
_MAXIMUM_FIELD = 10_000_000


class CsvParser(Parser):
    """A list of rows; each is a dictionary by the names in the first line. All values are strings."""

    name = "csv"
    content_types = frozenset({"text/csv", "application/csv", "text/x-csv", "text/tab-separated-values"})
    extensions = frozenset({"csv", "tsv", "tab", "psv"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns the rows; empty lines do not count, and an empty cell is null."""
        found = read_text(content, source)
        text = found.text
        csv.field_size_limit(_MAXIMUM_FIELD)
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text[:_SAMPLE], source))
        names: list[str] = []
        rows: list[dict[str, Any]] = []
        left = MAXIMUM_CELLS
        try:
            for cells in filter(any, _checked(lines)):
                left -= len(cells)
                if left < 0:
                    raise ValueError(f"the table has more than {MAXIMUM_CELLS:,} cells")
                if names:
                    rows.append(row_of(names, [cell or None for cell in cells]))
                else:
                    names = column_names(cells)
        except ValueError as error:
            if not rows:
                raise
            return found.told(InPart(rows, f"{error}, the rest is left out"))
        return found.told(rows)


def _checked(lines: Iterable[list[str]]) -> Iterator[list[str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise ValueError(str(error)) from error


def _delimiter(sample: str, source: ParserInput) -> str:
    """The character that splits the first lines into most columns, equally in as many as possible."""
    if source.name.lower().endswith((".tsv", ".tab")) or "tab-separated" in (source.content_type or ""):
        return "\t"
    lines = sample.splitlines()[:20]
    if len(lines) > 1 and len(sample) == _SAMPLE:
        lines.pop()  # The last one may be torn.
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        counts = [_outside_quotes(line, delimiter) for line in lines if line]
        if not counts or not counts[0]:
            continue
        score = counts[0] * sum(count == counts[0] for count in counts) / len(counts)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _outside_quotes(line: str, delimiter: str) -> int:
    return sum(part.count(delimiter) for part in line.split('"')[::2])
