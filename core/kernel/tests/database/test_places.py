"""Places in the log come out in order, each once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from svc_maintenance.transfer.places import PlaceSet, without


@given(
    st.lists(st.tuples(st.integers(0, 2**48), st.integers(0, 2**32 - 1))),
    st.lists(st.integers(0, 30)),
    st.integers(1, 20),
)
def test_places_come_out_once_and_in_order_however_many_there_are(
    places: list[tuple[int, int]], removed: list[int], run: int
) -> None:
    with PlaceSet(run) as held, PlaceSet(run) as others:
        for place in places + places[::2]:
            held.add(*place)
        gone = {places[index] for index in removed if index < len(places)}
        for place in gone:
            others.add(*place)
        assert list(held) == sorted(set(places))
        assert list(held) == sorted(set(places)), "asked again"
        assert list(without(held, others)) == sorted(set(places) - gone)
