"""Spreadsheets: Excel, old and new, and OpenDocument."""

from __future__ import annotations

from typing import Any, BinaryIO

from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.shapes import MAXIMUM_CELLS, check_archive, column_names, row_of, text_members

__all__ = ["SpreadsheetParser"]

_MAXIMUM_SHEETS = 1_000
_EXACT = 1 << 53


class SpreadsheetParser(Parser):
    """The sheets as rows by the names in their first line. Formulas are what they came to."""

    name = "spreadsheet"
    content_types = frozenset(
        {
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.ms-excel.sheet.macroenabled.12",
            "application/vnd.ms-excel.sheet.binary.macroenabled.12",
            "application/vnd.ms-excel",
            "application/vnd.oasis.opendocument.spreadsheet",
        }
    )
    extensions = frozenset({"xlsx", "xlsm", "xlsb", "xls", "ods"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns ``sheets`` and ``text``, the texts of all cells."""
        from python_calamine import CalamineError, CalamineWorkbook

        if content.read(2) == b"PK":
            content.seek(0)
            check_archive(content)
        content.seek(0)
        try:
            book = CalamineWorkbook.from_filelike(content)
            sheets, lacks = _sheets(book)
        except CalamineError as error:
            raise ValueError(str(error)) from error
        texts = [
            text
            for sheet in sheets
            for text in (*sheet["columns"], *(v for row in sheet["rows"] for v in row.values()))
            if isinstance(text, str)
        ]
        document = {"sheets": sheets, **text_members(texts)}
        return InPart(document, lacks) if lacks else document


def _sheets(book: Any) -> tuple[list[dict[str, Any]], str]:
    """The sheets, as far as they have no more cells than may be; and what is left out, or nothing."""
    found = []
    reasons = []
    left = MAXIMUM_CELLS
    for name in book.sheet_names[:_MAXIMUM_SHEETS]:
        sheet = book.get_sheet_by_name(name)
        if sheet.height * sheet.width > 10 * MAXIMUM_CELLS:
            reasons.append(f"the sheet {name!r} has more than {10 * MAXIMUM_CELLS:,} places")
            continue
        lines = [line for line in sheet.to_python(skip_empty_area=True) if any(cell != "" for cell in line)]
        kept = max(0, left) // max(1, len(lines[0])) if lines else 0
        if kept < len(lines):
            reasons.append(f"its sheets have more than {MAXIMUM_CELLS:,} cells")
        left -= sum(map(len, lines))
        if lines and not kept:
            break
        columns = column_names(lines[0]) if lines else []
        rows = [row_of(columns, [_plain(cell) for cell in line]) for line in lines[1:kept]]
        found.append({"name": name, "columns": columns, "rows": rows})
        if left < 0:
            break
    if reasons and not any(sheet["columns"] for sheet in found):
        raise ValueError(reasons[0])
    return found, f"{reasons[0]}, the rest is left out" if reasons else ""


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        return int(cell)  # A spreadsheet has no other numbers.
    return None if cell == "" else cell
