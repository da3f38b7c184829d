"""Damage of the files of one index, as readers meet it."""

from __future__ import annotations

from svc_query.indexing.rows import IndexRow

__all__ = ["DamagedIndex"]


class DamagedIndex(Exception):
    """The files of an index cannot be read; ``row`` has their manifest.

    ``missing``: a file is not there: it may have been replaced a moment ago.
    """

    def __init__(self, number: int, row: IndexRow, why: BaseException, *, missing: bool = False) -> None:
        super().__init__(f"The index of {row.field} is damaged: {why}")
        self.number = number
        self.row = row
        self.missing = missing
