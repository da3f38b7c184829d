"""The bodies of the routes, as callers send them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

__all__ = ["AggregateBody", "OrderBody", "QueryBody", "RebuildBody", "SearchBody"]

Number = Annotated[int, msgspec.Meta(ge=0)]
Names = Annotated[list[str], msgspec.Meta(max_length=100)]


class OrderBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field of an order, or ``@score``; ``asc`` or ``desc``."""

    field: str
    direction: Literal["asc", "desc"] = "asc"


class AggregateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be aggregated: whether documents are counted, and fields; ``group_by`` makes groups."""

    count: bool = False
    sum: Names = []
    avg: Names = []
    min: Names = []
    max: Names = []
    group_by: Annotated[list[str], msgspec.Meta(max_length=8)] = []


class _Common(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    limit: Number | None = None
    offset: Number = 0
    consistency: Literal["strict", "eventual"] = "strict"
    snapshot: str | None = None
    version: str | None = None
    fork: str | None = None


class QueryBody(_Common, frozen=True, forbid_unknown_fields=True, kw_only=True):
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


class SearchBody(_Common, frozen=True, forbid_unknown_fields=True, kw_only=True):
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
