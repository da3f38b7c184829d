"""JSON documents: merge patches, pointers, and numbers that keep their value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.errors import InvalidInput, NotFound
from svc_files.json_documents import apply_merge_patch, decode_json, encode_json, resolve_pointer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


class TestJson:
    @given(JSON)
    def test_a_document_survives(self, value: Any) -> None:
        assert decode_json(encode_json(value), "It") == value

    @given(st.binary(max_size=40))
    def test_any_bytes_are_a_document_or_refused(self, content: bytes) -> None:
        with suppress(InvalidInput):
            decode_json(content, "It")

    @given(JSON, JSON)
    def test_a_merge_changes_neither_side_and_twice_is_once(self, target: Any, patch: Any) -> None:
        before = encode_json(target), encode_json(patch)
        merged = apply_merge_patch(target, patch)
        assert (encode_json(target), encode_json(patch)) == before
        assert apply_merge_patch(merged, patch) == merged

    @given(JSON)
    def test_every_value_has_a_pointer(self, document: Any) -> None:
        for pointer, value in _pointers(document, ""):
            assert resolve_pointer(document, pointer) == value

    @given(JSON, st.text("/~01a", max_size=6))
    def test_any_pointer_finds_or_refuses(self, document: Any, pointer: str) -> None:
        with suppress(InvalidInput, NotFound):
            resolve_pointer(document, pointer)


def _pointers(value: Any, base: str) -> Iterator[tuple[str, Any]]:
    yield base, value
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in members:
        yield from _pointers(item, f"{base}/{str(key).replace('~', '~0').replace('/', '~1')}")
