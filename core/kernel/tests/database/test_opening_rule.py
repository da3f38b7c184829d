"""The rule of opening is the table in docs/durability-inside.md: its first row that fits decides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from svc.database.opening_rule import Cell, Found, Index, Verdict, decide

PAGE = Path(__file__).parents[4] / "docs" / "durability-inside.md"


def rows() -> Iterator[list[str]]:
    """The rows of the table: a text for each column."""
    text = PAGE.read_text().partition("## How a database is opened")[2].partition("\n## ")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] in ("reading", "writing"):
            yield cells


def described(found: Found) -> list[str]:
    """What was found, in the words of the table."""
    answers = (not found.alone, found.is_lost, found.is_short, found.is_broken)
    return [
        "writing" if found.writes else "reading",
        *("yes" if answer else "no" for answer in answers),
        found.index.value,
        found.cell.value,
    ]


def test_the_rule_is_the_table_and_each_row_decides_something() -> None:
    table = list(rows())
    used = set()
    for *answers, index, cell in product(*[(False, True)] * 5, Index, Cell):
        found = Found(*answers, index, cell)
        words = described(found)
        number = next(
            number
            for number, row in enumerate(table)
            if all(cell in ("\u2013", word) for cell, word in zip(row, words, strict=False))
        )
        used.add(number)
        assert decide(found).value == table[number][-1], words
    assert used == set(range(len(table)))
    assert {row[-1] for row in table} == {verdict.value for verdict in Verdict}
