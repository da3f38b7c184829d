"""What a document may hold, and who reads which file."""

from __future__ import annotations

import contextlib
import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svc_query.api import Parser, ParserInput
from svc_query.configuration import QueryConfiguration
from svc_query.parsing import (
    MAXIMUM_DEPTH,
    MAXIMUM_DOCUMENT_VALUES,
    choose_parser,
    decode_document,
    encode_document,
    parse_in_process,
)

ROOM = 1 << 25


def passed_on(document: Any) -> Any:
    return decode_document(encode_document(document, ROOM), ROOM)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)  # fmt: skip


@given(JSON)
def test_values_of_json_are_passed_on_as_they_are(document: Any) -> None:
    assert passed_on(document) == document


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        (dt.date(2024, 5, 1), "2024-05-01"),
        (dt.datetime(2024, 5, 1, 12, 30), "2024-05-01T12:30:00"),  # noqa: DTZ001
        (dt.datetime(2024, 5, 1, 12, 30, tzinfo=dt.UTC), "2024-05-01T12:30:00Z"),
        (b"abc", "YWJj"),
        ((1, 2), [1, 2]),
        ({1}, [1]),
        (float("nan"), None),
        (float("-inf"), None),
        (Decimal("1.5"), 1.5),
        ({1: Decimal("1.5"), None: dt.timedelta(seconds=90)}, {"1": 1.5, "null": "PT90S"}),
        (["\ud800", Decimal("1.5"), dt.timedelta(seconds=90)], ["?", 1.5, "PT90S"]),
        (
            ["\ud800", Decimal("Infinity"), {True: b"a"}, dt.date(2024, 5, 1)],
            ["?", None, {"true": "YQ=="}, "2024-05-01"],
        ),
        (["\ud800", {b"a": 2**70}], ["?", {"YQ==": 2**70}]),
        ({b"a": 1}, {"YQ==": 1}),
        ("half \ud800", "half ?"),
        ({"\udfff": 1}, {"?": 1}),
    ],
)
def test_other_values_become_some_that_json_has(given: Any, becomes: Any) -> None:
    assert passed_on(given) == becomes


@pytest.mark.parametrize("given", [object, [1j], {(1, 2): 3}, ["\ud800", 2**2000]])
def test_what_json_has_no_form_for_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="it gave a"):
        passed_on(given)


def nested(levels: int, inner: Any = None) -> Any:
    for level in range(levels):
        inner = [inner] if level % 2 else {"[": inner}
    return inner


def test_levels_are_counted_and_brackets_in_texts_are_not() -> None:
    assert passed_on(nested(MAXIMUM_DEPTH)) == nested(MAXIMUM_DEPTH)
    with pytest.raises(ValueError, match="more than 100 levels"):
        passed_on(nested(MAXIMUM_DEPTH + 1))
    brackets = {"[{": '"[[[' * 1_000 + "\\", "\\": ["[" * 200] * 200}
    assert passed_on(brackets) == brackets
    assert passed_on([[]] * 1_000) == [[]] * 1_000


def test_values_are_counted_and_commas_in_texts_are_not() -> None:
    commas = ["," * 1_000_000, '",' * 1_000]
    assert passed_on(commas) == commas
    fitting = [0] * (MAXIMUM_DOCUMENT_VALUES - 1)
    assert passed_on(fitting) == fitting
    with pytest.raises(ValueError, match="more than 500,000 values"):
        passed_on([0] * (MAXIMUM_DOCUMENT_VALUES + 1))
    with pytest.raises(ValueError, match="more than 500,000 values"):
        decode_document(b"[" + b"[]," * MAXIMUM_DOCUMENT_VALUES + b"[]]", ROOM)


def test_bytes_are_counted() -> None:
    assert encode_document("x" * 98, 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        encode_document("x" * 99, 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        decode_document(b" " * 101, 100)


@given(st.binary(max_size=200))
def test_bytes_from_anywhere_are_a_document_or_a_value_error(encoded: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode_document(encoded, ROOM)


class Sheet(Parser):
    name = "sheet"
    content_types = frozenset({"text/csv", "application/*+sheet"})
    extensions = frozenset({"csv", "tar.csv"})

    def parse(self, content: Any, source: Any) -> Any:
        return content.read().decode()


class Plain(Sheet):
    name = "plain"
    content_types = frozenset({"text/plain", "text/*"})
    extensions = frozenset({"txt"})


class Other(Sheet):
    name = "other"
    content_types = frozenset({"text/csv", "text/x-*"})
    extensions = frozenset({"csv", "gz"})


PARSERS = {parser.name: parser() for parser in (Sheet, Plain, Other)}


@pytest.mark.parametrize(
    ("content_type", "name", "wanted", "chosen"),
    [
        ("text/csv", "a.txt", None, "sheet"),
        ("TEXT/CSV; charset=utf-8", "a", None, "sheet"),
        ("text/csv", "a", "other", "other"),
        ("image/png", "a.csv", "plain", "plain"),
        ("text/csv", "a.csv", "absent", None),
        (None, "a.csv", None, "sheet"),
        (None, "a.CSV", None, "sheet"),
        ("", "b.tar.csv", None, "sheet"),
        ("application/octet-stream", "a.csv.gz", None, "other"),
        ("text/plain", "a.csv", None, "sheet"),
        ("text/plain", "README", None, "plain"),
        ("application/zip", "a.csv", None, "sheet"),
        ("application/x-own+sheet", "a", None, "sheet"),
        ("text/troff", "a.csv", None, "plain"),
        ("text/x-own", "a", None, "other"),
        ("image/png", "a.csv", None, None),
        ("application/octet-stream", "README", None, None),
        (None, ".csv", None, None),
        (None, "csv", None, None),
        (None, "", None, None),
        ("nonsense", "a.csv", None, "sheet"),
    ],
)
def test_the_parser_of_a_file_is(
    content_type: str | None, name: str, wanted: str | None, chosen: str | None
) -> None:
    found = choose_parser(PARSERS, content_type, name, wanted)
    assert (None if found is None else found.name) == chosen


def test_in_place_the_limits_of_a_document_hold_too() -> None:
    source = ParserInput("a", None, 1)
    assert parse_in_process(Plain(), b"text", source).document == "text"
    refused = parse_in_process(Plain(), b"\xff", source).failure
    assert refused is not None
    assert refused.startswith("The parser plain can't read it: 'utf-8' codec can't decode byte 0xff")
    small = QueryConfiguration(parse_output=1_024, parse_input=4_096)
    assert parse_in_process(Plain(), b"x" * 2_000, source, small).failure == (
        "The parser plain can't read it: What is in it takes more than 1,024 bytes."
    )
    assert parse_in_process(Plain(), b"x" * 5_000, source, small).failure == "It is larger than 4,096 bytes."
