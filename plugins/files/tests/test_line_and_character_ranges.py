"""Lines and characters of a content, read piece by piece under a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import PayloadTooLarge
from svc_files.parts import Budget, select_characters, select_lines


class TestParts:
    @given(st.text("a\nü", max_size=30), st.integers(1, 10), st.integers(0, 10), st.integers(1, 4))
    def test_lines_of_any_pieces(self, text: str, first: int, more: int, width: int) -> None:
        rows = text.split("\n")
        lines = [row + "\n" for row in rows[:-1]] + ([rows[-1]] if rows[-1] else [])
        content = text.encode()
        pieces = [content[at : at + width] for at in range(0, len(content), width)]
        selected, last = select_lines(pieces, first, first + more, Budget(1000, 1000))
        expected = lines[first - 1 : first + more]
        assert selected.decode() == "".join(expected)
        assert last == first - 1 + len(expected)

    @given(st.text("aü\U0001f600", max_size=30), st.integers(0, 20), st.integers(0, 20), st.integers(1, 4))
    def test_characters_of_any_pieces(self, text: str, start: int, more: int, width: int) -> None:
        content = text.encode()
        pieces = [content[at : at + width] for at in range(0, len(content), width)]
        budget = Budget(1000, 1000)
        assert select_characters(pieces, start, start + more, budget) == text[start : start + more]
        assert select_characters(pieces, start, None, budget) == text[start:]

    def test_a_budget_ends(self) -> None:
        with pytest.raises(PayloadTooLarge):
            select_lines([b"x" * 50] * 3, 1, None, Budget(100, 1000))
        with pytest.raises(PayloadTooLarge):
            select_lines([b"x" * 50] * 3, 2, None, Budget(1000, 100))
