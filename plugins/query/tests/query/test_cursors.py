"""Cursors come back as they went, tell nothing, and are refused when they are not ours."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svc_query.cursors import Cursors
from svc_query.ordering import Order, OrderField

from svc.errors import InvalidInput

ORDER = Order([OrderField("a"), OrderField("b", descending=True), OrderField("@score")])
ID = b"one database"
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=40),
    st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
)
PATHS = st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=9), max_size=4).map(
    tuple
)


@given(st.tuples(st.booleans(), VALUES), VALUES, st.floats(0, 1), PATHS)
def test_a_place_comes_back(first, second, score, path) -> None:
    deciding = [(True, None) if first[0] else (False, first[1]), (False, second), (False, None)]
    cursor = Cursors(ID, ORDER).encode(deciding, score, path, 7)
    assert Cursors(ID, ORDER).decode(cursor, "after") == ORDER.key(deciding, score, path)


def test_a_cursor_shows_no_name() -> None:
    cursor = Cursors(ID, ORDER).encode([(False, "secret")] * 3, 1.0, ("hidden", "file"), 1)
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    assert b"hidden" not in raw
    assert b"secret" not in raw


@pytest.mark.parametrize("cursor", ["", "a", "AAAA", "é", "A" * 100_000, "AAAA!"])
def test_what_no_query_gave_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Cursors(ID, ORDER).decode(cursor, "before")
    assert refusal.value.details["field"] == "before"


def test_a_cursor_of_another_order_or_database_is_refused() -> None:
    cursor = Cursors(ID, ORDER).encode([(False, 1)] * 3, 1.0, ("a",), 1)
    for other in (Cursors(ID, Order()), Cursors(b"another database", ORDER)):
        with pytest.raises(InvalidInput):
            other.decode(cursor, "after")


def test_a_long_text_gives_a_cursor_that_is_taken() -> None:
    deciding = [(False, "é" * 1_000_000), (True, None), (False, None)]
    cursor = Cursors(ID, ORDER).encode(deciding, 1.0, ("a",), 1)
    assert Cursors(ID, ORDER).decode(cursor, "after") == ORDER.key(deciding, 1.0, ("a",))
