"""What the operations of queries take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from svc.plugin import Page

__all__ = [
    "AggregateBody",
    "Damage",
    "IndexDirectory",
    "IndexFailure",
    "IndexField",
    "IndexJob",
    "IndexStatus",
    "IndexedField",
    "OrderBody",
    "PlanNode",
    "QueryAnswer",
    "QueryBody",
    "RebuildBody",
    "Rebuilding",
    "SearchAnswer",
    "SearchBody",
    "StatusQuery",
]

Document = dict[str, Any]
Number = Annotated[int, msgspec.Meta(ge=0)]
Names = Annotated[list[str], msgspec.Meta(max_length=100)]


class OrderBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One field of an order, or ``@score``; ``asc`` or ``desc``."""

    field: str
    direction: Literal["asc", "desc"] = "asc"


class AggregateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is to be aggregated: whether documents are counted, and fields; ``group_by`` makes groups."""

    count: bool = False
    sum: Names = []
    avg: Names = []
    min: Names = []
    max: Names = []
    group_by: Annotated[list[str], msgspec.Meta(max_length=8)] = []


class _Common(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    limit: Number | None = None
    offset: Number = 0
    consistency: Literal["strict", "eventual"] = "strict"
    snapshot: str | None = None
    version: str | None = None
    fork: str | None = None


class QueryBody(_Common, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A query.

    Attributes:
        limit: rows of the answer; None takes the default of the settings.
        offset: rows that are skipped.
        order_by: the order; behind it the score and the path decide.
        after: cursor: rows behind it.
        before: cursor: rows before it.
        include_total: whether all matches are counted.
        include_matches: whether each row says where it matches.
        select: members of the rows; None gives the usual ones.
        aggregate: aggregates instead of rows.
        explain: ``plan``, ``analyze``, or true for ``plan``.
        consistency: ``strict`` waits until the index holds all earlier writes, ``eventual`` does not.
        snapshot: name of a snapshot to query; goes before ``version`` and ``fork``.
        version: root hash of a version to query; goes before ``fork``.
    """

    path: str
    where: Any
    order_by: Annotated[list[OrderBody], msgspec.Meta(max_length=16)] = []
    after: str | None = None
    before: str | None = None
    include_total: bool = False
    include_matches: bool = False
    select: Names | None = None
    aggregate: AggregateBody | None = None
    explain: bool | Literal["plan", "analyze"] = False


class SearchBody(_Common, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A search, below a directory or everywhere; other members are as in a query.

    Attributes:
        query: words, as the operator ``search`` takes them.
        where: a filter beside it, or instead of it.
    """

    query: str | None = None
    where: Any = None
    path: str = "/"


class RebuildBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be indexed anew."""

    path: str = "/"


class StatusQuery(Struct, frozen=True, kw_only=True):
    """Of which directory the state of the index is shown; ``limit`` and ``after`` are of its failures."""

    path: str = "/"
    limit: Annotated[int, Meta(ge=1, le=1000, description="Most failures.")] = 100
    after: Annotated[str | None, Meta(description="Failures behind this path.")] = None


class PlanNode(Struct, frozen=True, kw_only=True):
    """A step of the plan of a query; the actual figures are there for ``analyze``."""

    operator: str
    field: str | UnsetType | None = UNSET
    index: str | UnsetType | None = UNSET
    estimated_rows: int | UnsetType | None = UNSET
    actual_rows: int | UnsetType | None = UNSET
    duration_ms: float | UnsetType | None = UNSET
    children: list[PlanNode] | UnsetType = UNSET


class _Found(Page[Document], frozen=True, kw_only=True):
    results: list[Document] | UnsetType = UNSET
    has_more: bool | UnsetType = UNSET  # type: ignore[assignment]
    next_cursor: str | UnsetType | None = UNSET  # type: ignore[assignment]
    total_count: int | UnsetType | None = UNSET
    meta: Document | UnsetType = UNSET


class QueryAnswer(_Found, frozen=True, kw_only=True):
    """Rows, or aggregates in their place, or the plan of the query.

    A row is a file: its path, size, times and score, or the members that ``select`` names. ``meta`` says what
    is not as usual, such as a version that no index knows.
    """

    prev_cursor: Annotated[str | UnsetType | None, Meta(description="Leads to the page before.")] = UNSET
    count: int | UnsetType = UNSET
    sum: Document | UnsetType = UNSET
    avg: Document | UnsetType = UNSET
    min: Document | UnsetType = UNSET
    max: Document | UnsetType = UNSET
    groups: Annotated[
        list[Document] | UnsetType, Meta(description="With group_by: the aggregates for each key.")
    ] = UNSET
    plan: Document | UnsetType = UNSET


class SearchAnswer(_Found, frozen=True, kw_only=True):
    """The files that match best, with snippets. The next part is asked for with ``offset``."""


class Rebuilding(Struct, frozen=True):
    """An index that is made anew: by a server from now on, on a file it has been."""

    rebuilding: bool
    path: str


class Damage(Struct, frozen=True):
    """Data of the index that were found damaged, and are made anew."""

    at: int
    reason: str


class IndexJob(Struct, frozen=True):
    """Work that goes on; how far it is, is told to those who see all of it."""

    path: str
    reason: str
    since: int
    waits_for_room: bool
    indexed: int | UnsetType = UNSET
    total: int | UnsetType = UNSET


class IndexedField(Struct, frozen=True):
    """A field of a configuration; ``resting`` are types whose plugins are not in use."""

    name: str
    value_type: str
    source: Any
    types: list[str]
    resting: list[str]


class IndexDirectory(Struct, frozen=True):
    """A directory with a configuration of its own, or the default at the root."""

    path: str
    default: bool | UnsetType = UNSET
    problem: str | UnsetType | None = UNSET
    glob: str | UnsetType | None = UNSET
    parser: str | UnsetType | None = UNSET
    fields: list[IndexedField] | UnsetType = UNSET


class IndexField(Struct, frozen=True):
    """An index; sizes in bytes. Figures are told to those who see everything."""

    field: str
    type: str
    options: Any
    documents: int | UnsetType = UNSET
    size: int | UnsetType = UNSET
    problem: str | UnsetType | None = UNSET


class IndexFailure(Struct, frozen=True):
    """A file that could not be read or indexed, wholly or in part."""

    path: str
    at: int
    error: str | UnsetType | None = UNSET
    not_converted: Any = UNSET
    indexes: Any = UNSET


class IndexStatus(Struct, frozen=True, kw_only=True):
    """What is indexed, what is being indexed, and what could not be."""

    path: str
    sequence: int
    documents: int
    waiting: int
    unflushed: int
    jobs: list[IndexJob]
    directories: list[IndexDirectory]
    indexes: list[IndexField]
    failures: list[IndexFailure]
    has_more: bool
    damage: Damage | UnsetType = UNSET
