"""Arrays that are read while they come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_client.models import Page
from svc_client.paging import ArrayReader, all_items

members = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(), st.none()), max_size=4)


@given(st.lists(members, max_size=8), members, st.integers(1, 20))
def test_whatever_the_pieces_the_items_and_members_are_those_of_the_document(
    items: list[dict[str, Any]], tail: dict[str, Any], step: int
) -> None:
    tail.pop("items", None)
    text = json.dumps({"items": items, **tail}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    reader = ArrayReader([text[start : start + step] for start in range(0, len(text), step)], "items")
    assert list(reader.items()) == items
    assert reader.members == tail


@pytest.mark.parametrize(
    "text", [b"", b'{"items":[', b'{"items":[{"a":1}', b'{"items":[{"a"', b'{"x":[]}', b"\xff"]
)
def test_what_is_no_such_document_or_ends_early_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        list(ArrayReader([text], "items").items())


def test_pages_follow_each_other_until_there_is_no_cursor() -> None:
    pages = {None: Page([1, 2], "b"), "b": Page([], "c"), "c": Page([3], None)}
    assert list(all_items(pages.__getitem__)) == [1, 2, 3]
