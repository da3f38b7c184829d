"""Paths and their segments, as Hypothesis makes them up."""

from __future__ import annotations

from hypothesis import strategies as st

SEGMENT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=8
)
PATH = st.lists(SEGMENT, min_size=1, max_size=5).map(tuple)
