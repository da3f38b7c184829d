"""What the routes of this plugin answer: the members that programs and commands rely on."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, defstruct

__all__ = ["Answer", "FoundBySearch", "Hit", "Rebuilding", "SearchAnswer", "Status", "answer_form"]

Document = dict[str, Any]


class Hit(Struct, frozen=True, kw_only=True):
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


class Answer(_Page, frozen=True, kw_only=True):
    """A page of a query's hits.

    Attributes:
        results: the hits.
        has_more: whether more follow.
        total_count: how many there are in all, if that was asked for.
        next_cursor: what the next page takes as ``after``.
        prev_cursor: what the page before takes as ``before``.
        meta: what is not as usual: a reindex that goes on, a version that no index knows.
    """

    results: list[Hit]
    total_count: int | None = None
    prev_cursor: str | None = None


class _Match(Struct):
    snippet: str | None = None
    highlights: list[tuple[int, int]] = []


class _SearchHit(Struct):
    path: str
    score: float
    matches: list[_Match] = []


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """A page of a search's hits; ``total_count`` is how many there are in all."""

    results: list[Hit]
    has_more: bool
    total_count: int | None = None
    meta: Document = {}


class FoundBySearch(Struct):
    """A page of a search's hits, with the snippets that a command shows of them."""

    results: list[_SearchHit]
    has_more: bool
    total_count: int | None = None


class Rebuilding(Struct):
    """An index that is made anew."""

    rebuilding: bool
    path: str


class _Damage(Struct):
    at: int
    reason: str


class _Job(Struct):
    path: str
    reason: str
    since: int
    waits_for_room: bool
    indexed: int = 0
    total: int = 0


class _Field(Struct):
    name: str
    types: list[str]


class _Directory(Struct):
    path: str
    default: bool = False
    problem: str | None = None
    glob: str | None = None
    fields: list[_Field] = []


class _Index(Struct):
    field: str
    type: str
    options: Any
    documents: int = 0
    size: int = 0
    problem: str | None = None


class _Failure(Struct):
    path: str
    at: int


class Status(Struct):
    """What is indexed, what is being indexed, and what could not be."""

    path: str
    documents: int
    waiting: int
    jobs: list[_Job]
    directories: list[_Directory]
    indexes: list[_Index]
    failures: list[_Failure]
    has_more: bool
    damage: _Damage | None = None


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
        return _Selected if request.get("select") else Answer
    members = [
        (name, int if name == "count" else Document)
        for name in ("count", "sum", "avg", "min", "max")
        if aggregate.get(name)
    ]
    if "group_by" not in aggregate:
        return defstruct("_Sums", members)
    group = defstruct("_Group", [("key", Document), *members])
    return defstruct("_Groups", [("groups", list[group])])  # type: ignore[valid-type]
