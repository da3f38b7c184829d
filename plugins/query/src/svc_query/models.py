"""What the operations of queries take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from svc.plugin import Confidential, Page

__all__ = [
    "AggregateBody",
    "Damage",
    "FilterBody",
    "GuessedEncoding",
    "IndexConfigurationBody",
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
    "SaveSearchBody",
    "SavedSearch",
    "SearchAnswer",
    "SearchBody",
    "StatusQuery",
]

Document = dict[str, Any]
Number = Annotated[int, Meta(ge=0)]
Names = Annotated[list[str], Meta(max_length=100)]


class FilterBody(Struct, frozen=True, omit_defaults=True):
    """A condition, with ``field`` and ``op``, or a combination, with nothing but one of and, or, not.

    Operators of plugins may take further members. A request's filter is not read as this struct, which says
    what one may hold: operators have options of their own, and errors name the place.
    """

    field: Annotated[
        str | UnsetType, Meta(description="A field of indexes.json, or one that begins with @.")
    ] = UNSET
    op: Annotated[
        str | UnsetType,
        Meta(
            description="eq, ne, gt, gte, lt, lte, between, in, prefix, contains, similar, fuzzy, phonetic, "
            "match, search, exists, or what a plugin adds."
        ),
    ] = UNSET
    value: Annotated[Any, Meta(description="Of in an array; of exists true or false.")] = UNSET
    value2: Annotated[Any, Meta(description="Of between: the upper end, included.")] = UNSET
    threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | UnsetType,
        Meta(description="Of similar, and of fuzzy by jaro_winkler: the least likeness."),
    ] = UNSET
    fuzziness: Annotated[
        int | Literal["auto"] | UnsetType, Meta(description="Of fuzzy: edits at most, or auto.")
    ] = UNSET
    algorithm: Annotated[
        Literal["damerau_levenshtein", "jaro_winkler"] | UnsetType, Meta(description="Of fuzzy.")
    ] = UNSET
    and_: Annotated[list[FilterBody] | UnsetType, Meta(description="All must match.")] = msgspec.field(
        default=UNSET, name="and"
    )
    or_: Annotated[list[FilterBody] | UnsetType, Meta(description="At least one must match.")] = (
        msgspec.field(default=UNSET, name="or")
    )
    not_: Annotated[FilterBody | UnsetType, Meta(description="Must not match.")] = msgspec.field(
        default=UNSET, name="not"
    )


# With Any it is decoded as it is; ``parse_filter`` reads it. The document shows the rest.
Where = FilterBody | list[FilterBody] | Any


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
    limit: Annotated[Number | None, Meta(description="Rows; null: as the settings say.")] = None
    offset: Annotated[Number, Meta(description="Rows that are skipped.")] = 0
    consistency: Annotated[
        Literal["strict", "eventual"],
        Meta(description="strict waits until the index holds all earlier writes, eventual does not."),
    ] = "strict"
    snapshot: Annotated[
        str | None, Meta(description="Name of the snapshot to query; goes before version and fork.")
    ] = None
    version: Annotated[
        str | None, Meta(description="Root hash of the version to query; goes before fork.")
    ] = None
    fork: Annotated[str | None, Meta(description="Name of the fork to query.")] = None
    aggregate: Annotated[AggregateBody | None, Meta(description="Aggregates instead of rows.")] = None
    explain: Annotated[
        bool | Literal["plan", "analyze"],
        Meta(description="plan, or true: the plan alone; analyze: rows, and the plan with times."),
    ] = False


class QueryBody(_Common, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A query of a directory and everything below it."""

    path: Annotated[str, Meta(description="The directory.")]
    where: Annotated[
        Where,
        Meta(
            description="The filter; of an array all must match, of an empty one every file does.",
            extra_json_schema={"type": ["object", "array"]},
        ),
    ]
    order_by: Annotated[
        list[OrderBody],
        Meta(max_length=16, description="The order; behind it the score and the path decide."),
    ] = []
    after: Annotated[str | None, Meta(description="Cursor: rows behind it.")] = None
    before: Annotated[str | None, Meta(description="Cursor: rows before it.")] = None
    include_total: Annotated[bool, Meta(description="Whether all matches are counted.")] = False
    include_matches: Annotated[bool, Meta(description="Whether each row says where it matches.")] = False
    select: Annotated[Names | None, Meta(description="Members of the rows; null: the usual ones.")] = None


class SearchBody(_Common, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A search, below a directory or everywhere: by words, by a filter, or by both."""

    query: Annotated[str | None, Meta(description="Words, as the operator search takes them.")] = None
    where: Annotated[
        Where,
        Meta(description="A filter, as of a query.", extra_json_schema={"type": ["object", "array", "null"]}),
    ] = None
    path: Annotated[str, Meta(description="The directory.")] = "/"


class SaveSearchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A request of a query or a search, and the path of the file that is to hold it."""

    path: str
    request: Document


class IndexConfigurationBody(Confidential, frozen=True, forbid_unknown_fields=True):
    """What is to be indexed of a directory, as ``indexes.json`` has it. Options of an index may be secret."""

    shown = ("path",)

    path: str
    configuration: Document


class SavedSearch(Struct, frozen=True):
    """The file that holds a saved search or a configuration, and whether it is new."""

    path: str
    created: bool


class RebuildBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be indexed anew."""

    path: str = "/"


class StatusQuery(Struct, frozen=True, kw_only=True):
    """Of which directory the state is shown; ``limit`` and ``after`` are of its failures and guesses."""

    path: str = "/"
    limit: Annotated[int, Meta(ge=1, le=1000, description="Most failures, and most guesses.")] = 100
    after: Annotated[str | None, Meta(description="Failures and guesses behind this path.")] = None


class PlanNode(Struct, frozen=True, kw_only=True):
    """A step of the plan of a query; the actual figures are there for ``analyze``.

    The first step has the strategy, and whether indexes serve the state that is asked for.
    """

    operator: str
    strategy: str | UnsetType = UNSET
    indexed: bool | UnsetType = UNSET
    field: str | UnsetType = UNSET
    index: Annotated[str | UnsetType, Meta(description="The index that answers, or walk.")] = UNSET
    estimated_rows: int | None
    actual_rows: int | UnsetType | None = UNSET
    duration_ms: float | UnsetType = UNSET
    children: list[PlanNode] | UnsetType = UNSET


class _Results(Page[Document], frozen=True):
    plan: PlanNode | UnsetType = UNSET
    results: list[Document] | UnsetType = UNSET
    groups: Annotated[
        list[Document] | UnsetType, Meta(description="With group_by: the aggregates for each key.")
    ] = UNSET
    count: int | UnsetType = UNSET
    sum: Document | UnsetType = UNSET
    avg: Document | UnsetType = UNSET
    min: Document | UnsetType = UNSET
    max: Document | UnsetType = UNSET


class _Found(_Results, frozen=True, kw_only=True):
    has_more: bool | UnsetType = UNSET  # type: ignore[assignment]
    next_cursor: str | UnsetType = UNSET  # type: ignore[assignment]
    total_count: int | UnsetType = UNSET
    meta: Document | UnsetType = UNSET


class _Asked(_Found, frozen=True, kw_only=True):
    prev_cursor: Annotated[str | UnsetType, Meta(description="Leads to the page before.")] = UNSET
    default_limit_hit: Annotated[bool | UnsetType, Meta(description="The query had no limit.")] = UNSET
    default_limit: int | UnsetType = UNSET


class QueryAnswer(_Asked, frozen=True):
    """Rows, or aggregates in their place, or the plan of the query.

    A row is a file: its path, size, times and score, or the members that ``select`` names. ``meta`` says what
    is not as usual, such as a version that no index knows.
    """


class SearchAnswer(_Found, frozen=True):
    """The files that match best, with snippets, or aggregates in their place, or the plan.

    The next part is asked for with ``offset``.
    """


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
    encoding: str | UnsetType | None = UNSET
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


class GuessedEncoding(Struct, frozen=True):
    """A text whose encoding nobody says, and the one in which it was read."""

    path: str
    encoding: str


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
    guessed: list[GuessedEncoding]
    more_guessed: Annotated[bool, Meta(description="Whether guesses follow, behind the last of the page.")]
    damage: Damage | UnsetType = UNSET
