"""Filters as people write them, to JSON and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svc_query.syntax import FilterSyntaxError, parse_filter

from query_model.filter_text import TEXT_WORDS, field_text, filter_text, value_text
from svc.errors import InvalidInput


def leaf(field: str, op: str, *value: Any, **options: Any) -> dict[str, Any]:
    return {"field": field, "op": op, **({"value": value[0]} if value else {}), **options}


READ = {
    "year = 1990": leaf("year", "eq", 1990),
    "year == 1990": leaf("year", "eq", 1990),
    "year != 1990": leaf("year", "ne", 1990),
    "year <> 1990": leaf("year", "ne", 1990),
    "year<1990": leaf("year", "lt", 1990),
    "year <= -1.5e3": leaf("year", "lte", -1500.0),
    "year > 12345678901234567890": leaf("year", "gt", 12345678901234567890),
    "year >= +3": leaf("year", "gte", 3),
    "year between 1990 and 1999": leaf("year", "between", 1990, value2=1999),
    "year in (1990, 1991,1992)": leaf("year", "in", [1990, 1991, 1992]),
    "year in [1990]": leaf("year", "in", [1990]),
    "year in ()": leaf("year", "in", []),
    'title ~ "war"': leaf("title", "contains", "war"),
    'title contains "war"': leaf("title", "contains", "war"),
    'title !~ "war"': {"not": leaf("title", "contains", "war")},
    'title not contains "war"': {"not": leaf("title", "contains", "war")},
    'title ^= "wa"': leaf("title", "prefix", "wa"),
    "title starts with 'wa'": leaf("title", "prefix", "wa"),
    'title similar "war"': leaf("title", "similar", "war"),
    'title similar to "war" (0.5)': leaf("title", "similar", "war", threshold=0.5),
    'title fuzzy "war" (2)': leaf("title", "fuzzy", "war", fuzziness=2),
    'title fuzzy "war" (auto)': leaf("title", "fuzzy", "war", fuzziness="auto"),
    'title fuzzy "war" (jaro_winkler)': leaf("title", "fuzzy", "war", algorithm="jaro_winkler"),
    'title fuzzy "war" (1, damerau_levenshtein)': leaf(
        "title", "fuzzy", "war", fuzziness=1, algorithm="damerau_levenshtein"
    ),
    'title fuzzy "war" (algorithm: jaro_winkler, threshold: 0.9)': leaf(
        "title", "fuzzy", "war", algorithm="jaro_winkler", threshold=0.9
    ),
    'title SOUNDS Like "wahr"': leaf("title", "phonetic", "wahr"),
    'title matches "wahr"': leaf("title", "match", "wahr"),
    'title match "wahr"': leaf("title", "match", "wahr"),
    'text search "war -peace \\"and so\\""': leaf("text", "search", 'war -peace "and so"'),
    "author exists": leaf("author", "exists", True),
    "author missing": leaf("author", "exists", False),
    "author not exists": {"not": leaf("author", "exists", True)},
    "author is null": leaf("author", "eq", None),
    "author is not null": leaf("author", "ne", None),
    "open = true": leaf("open", "eq", True),
    "open = False": leaf("open", "eq", False),
    "open = null": leaf("open", "eq", None),
    "@size > 10MiB": leaf("@size", "gt", 10 * 1024 * 1024),
    "@size > 1.5KB": leaf("@size", "gt", 1500),
    "@updated_at >= 2026-03-01": leaf("@updated_at", "gte", 1772323200000),
    "@updated_at < 2026-03-01T12:00:00.5+01:00": leaf("@updated_at", "lt", 1772362800500),
    "@updated_at < 2026-03-01t11:00z": leaf("@updated_at", "lt", 1772362800000),
    "`my field` = 1": leaf("my field", "eq", 1),
    "`and` = 1": leaf("and", "eq", 1),
    "meta.title/x-1 = 1": leaf("meta.title/x-1", "eq", 1),
    "größe = 1": leaf("größe", "eq", 1),
    "search = 1": leaf("search", "eq", 1),
    "vector nearest [1, 2.5] (10)": leaf("vector", "nearest", [1, 2.5], k=10),
    "vector :strange {\"a\": [1]} (`b c`: 'x', d: word)": leaf(
        "vector", "strange", {"a": [1]}, **{"b c": "x", "d": "word"}
    ),
    "vector :alone": leaf("vector", "alone"),
    "not a = 1": {"not": leaf("a", "eq", 1)},
    "not not a = 1": {"not": {"not": leaf("a", "eq", 1)}},
    "a = 1 and b = 2 and c = 3": {"and": [leaf("a", "eq", 1), leaf("b", "eq", 2), leaf("c", "eq", 3)]},
    "a = 1 or b = 2 and not c = 3": {
        "or": [leaf("a", "eq", 1), {"and": [leaf("b", "eq", 2), {"not": leaf("c", "eq", 3)}]}]
    },
    "(a = 1 or b = 2) AND c = 3": {
        "and": [{"or": [leaf("a", "eq", 1), leaf("b", "eq", 2)]}, leaf("c", "eq", 3)]
    },
    "a between 1 and 2 and b = 1": {"and": [leaf("a", "between", 1, value2=2), leaf("b", "eq", 1)]},
    "a not between 1 and 2": {"not": leaf("a", "between", 1, value2=2)},
    "a not in (1)": {"not": leaf("a", "in", [1])},
    "a\n  = 1": leaf("a", "eq", 1),
    "*": {"and": []},
    "": {"and": []},
    "  \n ": {"and": []},
    r'a = "\u00e4\ud83d\ude00\n\t\\\"\'\/`"': leaf("a", "eq", "ä😀\n\t\\\"'/`"),
}


@pytest.mark.parametrize("text", READ, ids=range(len(READ)))
def test_a_text_is_read(text: str) -> None:
    assert parse_filter(text) == READ[text]


@pytest.mark.parametrize("text", READ, ids=range(len(READ)))
def test_what_was_read_is_written_so_that_it_reads_the_same(text: str) -> None:
    assert parse_filter(filter_text(READ[text])) == READ[text]


WRONG = {
    "year >": (
        6,
        "Expected a value (a string in quotes, a number, a time, true, false or null), found the end.",
    ),
    "year > and b = 1": (
        7,
        "Expected a value (a string in quotes, a number, a time, true, false or null), found 'and'.",
    ),
    "title = war": (8, 'A value was expected here; a string stands in quotes: "war".'),
    "year": (4, "Expected an operator after the field 'year'"),
    "year not": (8, "Expected an operator after 'not'"),
    "year lke 'x'": (5, "'lke' is no operator; there are =, !="),
    "year = 1 b = 2": (9, "Expected 'and', 'or' or the end, found 'b'."),
    "(year = 1": (0, "The '(' that begins here has no closing ')'."),
    "year = 1)": (8, "Expected 'and', 'or' or the end, found ')'."),
    "a = 1 and": (9, "Expected the name of a field, 'not' or '(', found the end."),
    "and a = 1": (0, "Expected the name of a field, 'not' or '(', found 'and'."),
    '"title" = 1': (0, "The name of a field was expected here"),
    "a = 'x": (4, "The string that begins here has no closing '."),
    "`a = 1": (0, "The quoted name that begins here has no closing `."),
    r"a = '\q'": (5, "Escapes are"),
    r"a = '\u12'": (5, "\\u takes four hexadecimal digits"),
    r"a = '\ud800'": (4, "This string has half of a surrogate pair."),
    "a between 1": (11, "Expected 'and' and the upper bound of 'between', found the end."),
    "a in 1": (5, "Expected '(' and a list of values, found '1'."),
    "a in (1": (5, "The '(' that begins here has no closing ')'."),
    "a in (1 2)": (8, "Expected ',' or ')', found '2'."),
    "a in (1,)": (8, "Expected a value after ',', found ')'."),
    "a is 1": (5, "Expected 'null' or 'not null' after 'is', found '1'."),
    "a = 1 && b = 2": (6, "'&' is no operator: write 'and'."),
    "a = 1 || b = 2": (6, "'|' is no operator: write 'or'."),
    "!a = 1": (0, "'!' is no operator"),
    "a = “x”": (4, "Strings stand in straight quotes"),
    "a = 1;": (5, "';' has no meaning here."),
    "a = 12x": (6, "A number ends before 'x'"),
    "a = 1.2.3": (7, "A number ends before '.'"),
    "a = 2026-13-01": (4, "There is no such time as 2026-13-01."),
    "a = 2026-03-01T25:00": (4, "There is no such time"),
    "a = 1e999": (4, "This number is too large."),
    "a = " + "1" * 500: (4, "A number may have 400 characters."),
    "a = ٣": (4, "has no meaning here"),
    "a fuzzy 'x' (1, 2, 3)": (19, "An option is written with its name"),
    "a fuzzy 'x' (fuzziness: 1, fuzziness: 2)": (27, "'fuzziness' is given twice."),
    "a fuzzy 'x' (value: 1)": (13, "'value' is given twice."),
    "a between 1 and 2 (value2: 3)": (19, "'value2' is given twice."),
    "a :": (3, "Expected the name of an operator after ':', found the end."),
    'a :x {"b" 1}': (10, "Expected ':' and a value, found '1'."),
    "a :x {b: 1}": (6, "Expected the name of a member"),
    'a :x {"b": 1, "b": 2}': (14, "is given twice"),
    "(" * 200 + "a = 1" + ")" * 200: (100, "This nests deeper than 100 levels."),
    "not " * 5_000 + "a = 1": (400, "This nests deeper than 100 levels."),
    "a = " + "[" * 5_000: (103, "This nests deeper than 100 levels."),
    "a" * 70_000: (65_536, "A filter may have 65,536 characters"),
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_an_error_says_what_was_expected_and_points_at_the_place(text: str) -> None:
    position, message = WRONG[text]
    with pytest.raises(FilterSyntaxError) as raised:
        parse_filter(text)
    assert message in raised.value.message
    assert raised.value.position == raised.value.details["position"] == position
    lines = raised.value.pointed().split("\n")
    assert lines[0] == raised.value.message
    assert all(line.isprintable() for line in lines)
    assert len(lines) == 3
    assert set(lines[2]) == {" ", "^"}
    assert len(lines[1]) < 90


def test_the_caret_stands_below_the_place() -> None:
    def pointed(text: str) -> list[str]:
        with pytest.raises(FilterSyntaxError) as raised:
            parse_filter(text)
        return raised.value.pointed().split("\n")[1:]

    assert pointed("a = 1 b") == ["  a = 1 b", "        ^"]
    assert pointed("a = 1 and\nb = ! 2") == ["  b = ! 2", "      ^"]
    assert pointed('a = "漢字" b') == ['  a = "漢字" b', "             ^"], "such characters take two columns"
    assert pointed('a = "\x1b" b') == ['  a = "?" b', "          ^"]
    line, caret = pointed(f'a = "{"x" * 100}" b and {"c" * 100}')
    assert line[len(caret) - 1] == "b"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        3,
        "a",
        {},
        {"field": "a"},
        {"and": 1},
        {"or": "x"},
        {"field": 1, "op": "eq"},
        {"not": []} and {"nor": []},
    ],
)
def test_what_is_no_filter_is_not_written(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        filter_text(wrong)


def test_values_that_json_does_not_have_are_not_written() -> None:
    for wrong in (float("nan"), float("inf"), object(), b"x"):
        with pytest.raises(InvalidInput):
            value_text(wrong)


NAMES = st.one_of(
    st.sampled_from(["year", "@size", "title", "and", "NOT", "my field", "a`b", "*", "1", "a:b", ""]),
    st.text(max_size=6),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(min_value=-(10**30), max_value=10**30),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)
OPERATORS = st.one_of(
    st.sampled_from([*TEXT_WORDS, "between", "in", "exists"]),
    st.text(min_size=1, max_size=5),
)
OPTIONS = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"value2": VALUES}),
    st.fixed_dictionaries({"fuzziness": st.one_of(st.just("auto"), st.integers(), st.text(max_size=4))}),
    st.fixed_dictionaries({"threshold": VALUES}),
    st.dictionaries(NAMES.filter(lambda name: name not in ("field", "op", "value")), VALUES, max_size=3),
)


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {"field": draw(NAMES), "op": draw(OPERATORS)}
    if draw(st.integers(0, 9)):
        found["value"] = draw(VALUES)
    return {**found, **draw(OPTIONS)}


FILTERS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(lambda part: {"not": part}, inner),
        st.builds(
            lambda word, parts: {word: parts}, st.sampled_from(["and", "or"]), st.lists(inner, max_size=4)
        ),
    ),
    max_leaves=8,
)


def simplified(where: Any) -> Any:
    """The same filter without what text does not tell apart."""
    if isinstance(where, list):
        return simplified({"and": where})
    ((word, parts),) = where.items() if len(where) == 1 else (("", None),)
    if word == "not":
        return {"not": simplified(parts)}
    if word in ("and", "or"):
        if not parts:
            return {"and": []} if word == "and" else {"not": {"and": []}}
        return simplified(parts[0]) if len(parts) == 1 else {word: [simplified(part) for part in parts]}
    return where


@given(FILTERS)
def test_any_filter_is_the_same_after_text_and_back(where: Any) -> None:
    text = filter_text(where)
    assert text.isprintable()
    again = parse_filter(text)
    assert again == simplified(where)
    assert filter_text(again) == text


@given(st.lists(FILTERS, max_size=3))
def test_an_array_means_and(where: Any) -> None:
    assert parse_filter(filter_text(where)) == simplified(where)


PIECES = st.sampled_from(
    ["a", "and", "or", "not", "(", ")", "=", "~", ":", ",", "'x'", '"', "`", "1", "2026-01-01", "in", "is",
     "null", "between", "[", "]", "{", "}", "\\", "!", " ", "\n", "ä", "٣", "fuzzy", "-", "*", "KiB"]
)  # fmt: skip


@given(
    st.one_of(
        st.text(max_size=30), st.lists(PIECES, max_size=12).map(" ".join), st.lists(PIECES).map("".join)
    )
)
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    refused: FilterSyntaxError | None = None
    try:
        where = parse_filter(text)
    except FilterSyntaxError as error:
        refused = error
    if refused is None:
        assert parse_filter(filter_text(where)) == where
    else:
        assert 0 <= refused.position <= len(text)
        assert refused.message.endswith((".", '".'))
        assert refused.pointed().startswith(refused.message)


@given(st.text(max_size=10))
def test_the_name_of_any_field_can_be_written(name: str) -> None:
    assert parse_filter(f"{field_text(name)} = 1") == leaf(name, "eq", 1)
