"""Sources find values in documents, and values are converted once, to what their field asks for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svc_query.indexing.rows import DocumentRow, decode_document, decode_texts, encode, encode_texts
from svc_query.sources import Looks, TooManyLooks, compile_source
from svc_query.values import NOT_CONVERTED, VALUE_TYPES, converter

from svc.errors import InvalidInput

DOCUMENT = {
    "a": {"b": [1, {"c": "x"}, [2, 3]], "": "empty key"},
    "Title": "T",
    "subtitle": "s",
    "none": None,
    "list": [],
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (["Title"], ["T"]),
        (["none"], [None]),
        (["missing"], []),
        (["list"], [[]]),
        (["list", ""], []),
        (["a", "b", 0], [1]),
        (["a", "b", -1, ""], [2, 3]),
        (["a", "b", 9], []),
        (["a", "b", ""], [1, {"c": "x"}, [2, 3]]),
        (["a", "b", "", "c"], ["x"]),
        (["/title$/i"], ["T", "s"]),
        (["/title$/"], ["s"]),
        (["Title", "deeper"], []),
        (["Title", 0], []),
    ],
)
def test_a_source_finds_its_values(source: list[Any], expected: list[Any]) -> None:
    assert compile_source(source)(DOCUMENT, 100, Looks()) == expected


def test_a_source_gives_no_more_than_it_may() -> None:
    assert len(compile_source([""])(list(range(1000)), 7, Looks())) == 7


@pytest.mark.parametrize("expression", [r"/(a)\1/", "/a(?=b)/", "/(/", "/a{2000}/", "/" + "a" * 300 + "/"])
def test_an_expression_that_is_not_regular_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput, match="expression"):
        compile_source([expression])


@pytest.mark.parametrize("expression", ["/(a|aa)+$/", "/^(a*)*$/", "/(.*a){20}c/", "/k.*N.*x$/i"])
def test_an_expression_that_backtracking_would_never_end_ends(expression: str) -> None:
    find = compile_source([expression])
    assert find({"a" * 255 + "b" + str(number): number for number in range(100)}, 10, Looks()) == []


def test_a_document_is_looked_at_only_so_much() -> None:
    looks = Looks(1000)
    keys = {str(number): number for number in range(30)}
    assert len(compile_source(["/^1/"])(keys, 100, looks)) == 11
    with pytest.raises(TooManyLooks):
        compile_source(["/^x/"])(keys, 100, looks)
    wide = [[[0] * 10] * 10] * 10
    with pytest.raises(TooManyLooks):
        compile_source(["", "", "", "missing"])(wide, 1, Looks(1000))


def test_an_expression_looks_at_the_beginning_of_a_key() -> None:
    find = compile_source(["/.*.*x/"])
    assert find({"a" * 255 + "x": 1, "a" * 256 + "x": 2}, 10, Looks()) == [1]


@pytest.mark.parametrize(
    ("value_type", "value", "expected"),
    [
        ("auto", True, True),
        ("auto", 2**70, 2**70),
        ("auto", float("inf"), NOT_CONVERTED),
        ("auto", [1], NOT_CONVERTED),
        ("auto", {"a": 1}, NOT_CONVERTED),
        ("string", 12, "12"),
        ("string", True, "true"),
        ("string", 1.5, "1.5"),
        ("integer", "12", 12),
        ("integer", "12.5", NOT_CONVERTED),
        ("integer", 12.0, 12),
        ("integer", True, NOT_CONVERTED),
        ("integer", "9" * 2000, NOT_CONVERTED),
        ("integer", 10**2000, NOT_CONVERTED),
        ("float", "1e3", 1000.0),
        ("float", 7, 7.0),
        ("float", True, NOT_CONVERTED),
        ("float", "nan", NOT_CONVERTED),
        ("float", 10**400, NOT_CONVERTED),
        ("boolean", "TRUE", True),
        ("boolean", 1, NOT_CONVERTED),
        ("timestamp", "1970-01-02", 86_400_000),
        ("timestamp", "1970-01-01T00:00:01+00:00", 1000),
        ("timestamp", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1000),
        ("timestamp", date(1970, 1, 2), 86_400_000),
        ("timestamp", 5, 5),
        ("timestamp", "soon", NOT_CONVERTED),
        ("array", [1, 2.5], (1.0, 2.5)),
        ("array", [], NOT_CONVERTED),
        ("array", ["1"], NOT_CONVERTED),
        ("array", [True], NOT_CONVERTED),
        ("text", "x" * 20, "x" * 10),
        ("auto", "\ud800", "\ufffd"),
        ("auto", "\ud83d\ude00", "\U0001f600"),
    ],
)
def test_a_value_is_converted_or_left_out(value_type: str, value: Any, expected: Any) -> None:
    found = converter(value_type, 10)(value)
    assert found == expected
    assert type(found) is type(expected)
    assert converter(value_type, 10)(None) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


@given(ANYTHING, st.sampled_from(sorted(VALUE_TYPES)))
def test_whatever_is_converted_can_be_stored(value: Any, value_type: str) -> None:
    found = converter(value_type, 100)(value)
    if found is NOT_CONVERTED:
        return
    row = DocumentRow("a", 1, None, 1, 1, bytes(32), 1, "", [[found]])
    (stored,) = decode_document(encode(row)).values[0]
    expected = list(found) if isinstance(found, tuple) else found
    assert stored == expected
    assert decode_texts(encode_texts([found], "zstd")) == [expected]
