"""Cursors give their place back, order as paths do, and tell nothing where they are sealed."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from svc.errors import InvalidInput
from svc_files.cursors import Cursors
from svc_files.deleted_view import path_key

from .path_strategies import PATH  # noqa: TID252

OPEN = Cursors(bytes(16), sealed=False)


class TestCursors:
    @given(PATH)
    def test_a_cursor_gives_its_place_back(self, path: tuple[str, ...]) -> None:
        assert OPEN.decode(OPEN.encode(path)) == (path, 0)

    @given(st.text(max_size=20))
    def test_any_other_text_is_refused_or_a_place(self, text: str) -> None:
        with suppress(InvalidInput):
            assert isinstance(OPEN.decode(text)[0], tuple)

    @given(PATH, PATH)
    def test_keys_of_the_view_order_as_paths_do(self, left: tuple[str, ...], right: tuple[str, ...]) -> None:
        assert (path_key(left) < path_key(right)) == (left < right)
