"""Arguments as a request carries them: read as they were written, and refused with the same words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from svc.errors import InvalidInput, InvalidPath
from svc.operations import Page, bind_arguments, operation, public, read_query, write_query
from svc.operations.values import next_arguments, read_arguments


class Question(Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    name: str | None = None
    deep: bool = False
    active: bool | None = None
    order: Literal["up", "down"] = "up"
    tags: list[str] = []
    offset: int = 0
    days: Annotated[float, Meta(ge=0)] | None = None


class Paged(Struct, frozen=True):
    offset: int = 0
    after: str | None = None


class Parts(Page[int], frozen=True):
    parts: list[int]


@operation("GET", "/parts", public)
def list_parts(call: Any, query: Paged = Paged()) -> Parts:
    """Lists parts."""
    return Parts([])


class Needed(Struct, frozen=True):
    path: str


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    count: int = 0


@operation("POST", "/things/{name}/{path:path}", public)
def change_thing(call: Any, name: str, path: tuple[str, ...], query: Question, body: Body) -> Body:
    """Changes a thing."""
    return body


@given(
    st.builds(
        Question,
        limit=st.integers(1, 1000),
        name=st.none() | st.text(),
        deep=st.booleans(),
        active=st.none() | st.booleans(),
        order=st.sampled_from(["up", "down"]),
        tags=st.lists(st.text(), max_size=3),
        offset=st.integers(-(10**17), 10**17),
        days=st.none() | st.floats(0, allow_infinity=False),
    )
)
def test_a_query_is_read_as_it_was_written(question: Question) -> None:
    assert read_query(Question, write_query(question)) == question


@pytest.mark.parametrize(
    ("values", "words", "details"),
    [
        ({"limit": "0"}, "The parameter limit is at least 1.", {"field": "limit", "limit": 1}),
        ({"limit": "1001"}, "The parameter limit is at most 1000.", {"field": "limit", "limit": 1000}),
        ({"limit": "x"}, "The parameter limit is an integer.", {"field": "limit"}),
        ({"limit": "1" * 19}, "The parameter limit is an integer.", {"field": "limit"}),
        ({"limit": "٣"}, "The parameter limit is an integer.", {"field": "limit"}),
        ({"days": "x"}, "The parameter days is a number.", {"field": "days"}),
        ({"days": "nan"}, "The parameter days is a number.", {"field": "days"}),
        ({"days": "-0.5"}, "The parameter days is at least 0.", {"field": "days", "limit": 0}),
        ({"deep": "perhaps"}, "The parameter deep is true or false.", {"field": "deep"}),
        ({"order": "left"}, "The parameter order is one of down, up.", {"field": "order"}),
    ],
)
def test_a_query_is_refused(values: dict[str, Any], words: str, details: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_query(Question, values)
    assert (refused.value.message, refused.value.details) == (words, details)


def test_what_is_needed_is_named() -> None:
    with pytest.raises(InvalidInput, match="The query needs the parameter path"):
        read_query(Needed, {})


def test_a_bare_name_is_true_and_of_repeated_ones_the_last_counts() -> None:
    found = read_query(Question, {"deep": "", "name": ["a", "b"], "tags": "one", "other": "x"})
    assert (found.deep, found.name, found.tags) == (True, "b", ["one"])


def test_arguments_are_encoded_as_a_url() -> None:
    said = bind_arguments(
        change_thing, ("a/b", ("c d", "é")), {"query": Question(limit=5), "body": Body("x")}
    )
    assert said.url == "/things/a%2Fb/c%20d/%C3%A9"
    assert said.query["limit"] == "5"
    assert said.body == b'{"name":"x","count":0}'


def test_a_call_on_a_file_reads_arguments_as_a_server_does() -> None:
    found = read_arguments(change_thing, ("n", ("a", "e\u0301"), Question(), Body("x", 1)), {})
    assert found == {"name": "n", "path": ("a", "é"), "query": Question(), "body": Body("x", 1)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("n", ("..",), Question(), Body("x")), ".."),
        (("n", ("a",), Question(limit=0), Body("x")), "at least 1"),
        (("n", ("a",), Question(), Body(5)), "expected `str`, got `int` .at name."),  # type: ignore[arg-type]
    ],
)
def test_it_refuses_what_a_server_refuses(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises((InvalidInput, InvalidPath), match=words):
        read_arguments(change_thing, arguments, {})


def test_another_page_is_asked_for_by_its_cursor_alone() -> None:
    """What was skipped on the first page is not skipped again."""
    asked = next_arguments(list_parts, {"query": Paged(offset=3)}, "c")
    assert asked == {"query": Paged(offset=0, after="c")}


def test_arguments_that_do_not_fit_are_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError):
        bind_arguments(change_thing, ("n",), {"nonsense": 1})
