"""What a declaration says, and what it may not say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from svc.errors import PluginError
from svc.operations import Created, Page, operation, operations_of, public, requires
from svc.operations.matching import match_operation
from svc.pipeline import check_route
from svc.pipeline.binding import endpoints_of
from svc.pipeline.openapi import has_schema
from svc.plugins import Operation, Route, RouteRegistry
from svc.plugins.registry import routes_of


class Custom:
    """What JSON has no form for."""


class Thing(Struct, frozen=True):
    name: str


class OddQuery(Struct, frozen=True):
    when: dict[str, int]


class Question(Struct, frozen=True):
    limit: int = 10
    after: str | None = None


class Things(Page[Thing], frozen=True):
    things: list[Thing]


@operation("GET", "/things", public)
def list_things(call: Any, query: Question = Question()) -> Things:
    """Lists things.

    In some order.

    Args:
        call: not for readers of the document.
    """
    return Things([Thing("a")])


@operation("POST", "/things", public, status=201)
def make_thing(call: Any, body: Thing) -> Created[Thing]:
    """Makes a thing."""
    return Created(body, created=True)


@operation("GET", "/things/{name:text}", public, older=("/thing/{name}",))
def show_thing(call: Any, name: str) -> Thing:
    """Shows a thing."""
    return Thing(name)


@operation("GET", "/at/{path:path}", requires(Operation.READ, path="path"))
def show_at(call: Any, path: tuple[str, ...]) -> Thing:
    """Shows what is at a path."""
    return Thing(path[-1])


def test_the_signature_says_query_body_and_answer() -> None:
    listing, making, showing = list_things.signature, make_thing.signature, show_thing.signature
    assert (listing.query, listing.body, listing.answer, listing.pages) == (Question, None, Things, True)
    assert (making.body, making.needs_body, making.answer, making.creates) == (Thing, True, Thing, True)
    assert (showing.fields, showing.query) == (("name",), None)


def test_the_docstring_says_the_rest() -> None:
    assert (list_things.summary, list_things.description) == ("Lists things.", "In some order.")
    assert show_thing.description == ""


def test_a_module_has_the_operations_that_it_declares() -> None:
    import sys

    declared = [found.name for found in operations_of(sys.modules[__name__])]
    assert declared == ["list_things", "make_thing", "show_thing", "show_at"]


def test_calling_an_operation_runs_its_function() -> None:
    assert show_thing(None, "x") == Thing("x")


ON_PATH = requires(Operation.READ, path="path")


def declared(function: Any, template: str = "/x", **facts: Any) -> Any:
    return operation("GET", template, facts.pop("access", public), **facts)(function)


def no_annotation(call, query):
    """Has no annotation."""


def other_argument(call: Any, other: Question) -> Thing:
    """Has an argument that comes from nowhere."""
    return Thing("")


def unknown_form(call: Any, query: Unknown) -> Thing:  # noqa: F821
    """Has an annotation that can't be evaluated."""
    return Thing("")


def undocumented(call: Any) -> Thing:
    return Thing("")


def raw(call: Any) -> bytes:
    """Answers bytes."""
    return b""


def odd_query(call: Any, query: OddQuery) -> Thing:
    """Asks for what no text of a URL stands for."""
    return Thing("")


def custom_answer(call: Any) -> Custom:
    """Answers what msgspec has no schema for."""
    return Custom()


def maybe_query(call: Any, query: Question | None = None) -> Thing:
    """Asks by what may be no struct."""
    return Thing("")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (declared(odd_query), "can't be read from a URL"),
        (declared(maybe_query), "can't be read from a URL"),
        (declared(show_thing.function, "/x/{name}", headers={"X-Size": "size"}), "no answer has it"),
        (declared(show_thing.function, "/x/{name}", headers={"X-A\r\nX-B": "name"}), "no name of a field"),
        (declared(no_annotation), "has no annotation"),
        (declared(other_argument), "'other'"),
        (declared(unknown_form), "can't be evaluated"),
        (declared(undocumented), "has no docstring"),
        (declared(raw), "names no responder"),
        (declared(show_thing.function, "/x/{name}", older=("/y",)), "has no field 'name'"),
        (
            declared(show_thing.function, "/x/{name}", access=requires(Operation.READ, path="path")),
            "path field",
        ),
        (declared(raw, responder="svc.errors:nothing"), "there is none"),
    ],
)
def test_a_wrong_declaration_is_refused_when_it_is_registered(wrong: Any, words: str) -> None:
    registry = RouteRegistry(check_route)
    registry.begin("test")
    with pytest.raises(PluginError, match=words):
        registry.add_operations([wrong])


def test_two_operations_behind_one_text_are_refused() -> None:
    """A text takes the rest of a URL whole, so that the pipeline could serve one of them only."""
    registry = RouteRegistry()
    registry.begin("test")
    both = ("/x/{name:text}/left", "/x/{name:text}/right")
    with pytest.raises(PluginError, match="at one text"):
        registry.add_operations(declared(show_thing.function, template) for template in both)


def test_an_operation_without_a_schema_is_described_without_its_types(
    caplog: pytest.LogCaptureFixture,
) -> None:
    described = operation("GET", "/custom", public)(custom_answer)
    (route,) = routes_of([described], "test")
    (endpoint,) = endpoints_of(route).values()
    assert not has_schema(endpoint)
    assert "custom_answer" in caplog.text


def test_two_operations_at_one_url_are_refused() -> None:
    with pytest.raises(PluginError, match="at one URL"):
        list(routes_of([list_things, declared(undocumented, "/things")], "test"))


@pytest.mark.parametrize("template", ["things", "/a b", ""])
def test_a_template_that_is_none_is_refused(template: str) -> None:
    with pytest.raises(PluginError, match="no URL template"):
        list(routes_of([declared(undocumented, template)], "test"))


def test_operations_of_one_template_share_a_route() -> None:
    routes: list[Route] = list(routes_of([list_things, make_thing, show_thing], "test"))
    assert [(route.template, route.methods) for route in routes] == [
        ("/things", ("GET", "POST")),
        ("/things/{name:text}", ("GET",)),
        ("/thing/{name}", ("GET",)),
    ]


@pytest.mark.parametrize(
    ("path", "name", "fields"),
    [
        ("/things", "list_things", {}),
        ("/things/a%2Fb", "show_thing", {"name": "a/b"}),
        ("/things/a/b", "show_thing", {"name": "a/b"}),
        ("/thing/a", "show_thing", {"name": "a"}),
        ("/at", "show_at", {"path": ()}),
        ("/at/a/%C3%A9", "show_at", {"path": ("a", "é")}),
    ],
)
def test_a_url_names_an_operation(path: str, name: str, fields: dict[str, Any]) -> None:
    found = match_operation([list_things, make_thing, show_thing, show_at], "GET", path)
    assert (found.operation.name, found.fields) == (name, fields)
