"""The members of answers that commands rely on: a server that is none may answer anything."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, defstruct

__all__ = ["FoundBySearch", "answer_form"]

Document = dict[str, Any]


class _Hit(Struct, frozen=True, kw_only=True):
    """A file that was found.

    Attributes:
        path: where it stands.
        total_size: bytes.
        content_type: media type.
        created_at: Unix milliseconds.
        updated_at: Unix milliseconds.
        score: above 0 and at most 1, which is an exact match.
        matched_by: names of the fields that matched, sorted.
        matches: where in its fields it matches, if that was asked for.
    """

    path: str
    total_size: int
    content_type: str | None
    created_at: int
    updated_at: int
    score: float
    matched_by: list[str]
    matches: list[Document] = []


class _Page(Struct, frozen=True, kw_only=True):
    has_more: bool
    next_cursor: str | None = None
    meta: Document = {}

    def __post_init__(self) -> None:
        if self.has_more and self.next_cursor is None:
            raise ValueError("more follows, and no cursor leads there")


class _Answer(_Page, frozen=True, kw_only=True):
    """A page of a query's hits.

    Attributes:
        results: the hits.
        has_more: whether more follow.
        total_count: how many there are in all, if that was asked for.
        next_cursor: what the next page takes as ``after``.
        prev_cursor: what the page before takes as ``before``.
        meta: what is not as usual: a reindex that goes on, a version that no index knows.
    """

    results: list[_Hit]
    total_count: int | None = None
    prev_cursor: str | None = None


class _Match(Struct):
    snippet: str | None = None
    highlights: list[tuple[int, int]] = []


class _SearchHit(Struct):
    path: str
    score: float
    matches: list[_Match] = []


class FoundBySearch(Struct):
    """A page of a search's hits, with the snippets that a command shows of them."""

    results: list[_SearchHit]
    has_more: bool
    total_count: int | None = None


class _Selected(_Page, frozen=True, kw_only=True):
    results: list[Document]


class _Node(Struct):
    operator: str = ""
    estimated_rows: int | None = None
    actual_rows: int | None = None
    duration_ms: float | None = None
    children: list[_Node] = []


class _Explained(Struct):
    plan: _Node
    results: list[Any] = []


def answer_form(request: Document) -> type[Struct]:
    """Returns the type of what ``POST /query`` answers to a request."""
    if "explain" in request:
        return _Explained
    aggregate = request.get("aggregate")
    if not isinstance(aggregate, dict):  # of another kind it is refused
        return _Selected if request.get("select") else _Answer
    members = [
        (name, int if name == "count" else Document)
        for name in ("count", "sum", "avg", "min", "max")
        if aggregate.get(name)
    ]
    if "group_by" not in aggregate:
        return defstruct("_Sums", members)
    group = defstruct("_Group", [("key", Document), *members])
    return defstruct("_Groups", [("groups", list[group])])  # type: ignore[valid-type]
