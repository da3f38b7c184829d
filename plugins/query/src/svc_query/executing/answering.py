"""One query, from what was asked to the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from svc.errors import InvalidInput
from svc.plugin import Path, path_not_found
from svc_query.aggregation import COUNT, Aggregates, aggregate_all, aggregate_groups
from svc_query.api import QueryOperator
from svc_query.cursors import Cursors
from svc_query.executing.budget import Budget
from svc_query.executing.matching import Match, Matching
from svc_query.executing.ordered import choose_strategy, find_page
from svc_query.executing.paging import Page, Paging
from svc_query.executing.visibility import Caller, Scope, scope_of
from svc_query.filters import Filter
from svc_query.locators import Hit, hits_of
from svc_query.ordering import SCORE, Order, OrderField
from svc_query.planning.compiling import Compiler, require_field
from svc_query.planning.explaining import explain_tree
from svc_query.planning.nodes import Node
from svc_query.results import Projection
from svc_query.snapshot import Coverage, Document, FieldUse, Progress, Snapshot

__all__ = ["Answer", "Question", "answer_query", "coverage_for"]

_MOST_PARTS = 1_000


class Question(NamedTuple):
    """What is asked, checked for its form.

    Attributes:
        limit: rows, or groups, of the answer.
        default_limit: whether the caller left that to us.
        offset: rows that are skipped.
        order: of the rows, or of the groups.
        after: cursor to begin behind.
        before: cursor to end before.
        include_total: whether all matches are counted.
        include_matches: whether hits are noted.
        aggregates: what is aggregated instead of rows.
        explain: ``plan``, ``analyze`` or None.
        most_rows: how far ``offset`` and ``limit`` reach together.
    """

    path: Path
    where: Filter
    limit: int
    default_limit: bool = False
    offset: int = 0
    order: tuple[OrderField, ...] = ()
    after: str | None = None
    before: str | None = None
    include_total: bool = False
    include_matches: bool = False
    select: Sequence[str] | None = None
    aggregates: Aggregates | None = None
    explain: str | None = None
    most_rows: int = 100_000


class Answer(NamedTuple):
    """The members of an answer; for each row its document and where it matches, when that was asked for."""

    body: dict[str, Any]
    hits: list[tuple[Document, list[Hit]]] | None = None


def answer_query(
    snapshot: Snapshot,
    caller: Caller,
    question: Question,
    operators: Mapping[str, QueryOperator],
    budget: Budget,
    database_id: bytes,
    coverage: Coverage | None = None,
) -> Answer:
    """Answers a query; ``coverage`` is what ``coverage_for`` returned, where that was asked for already.

    Raises InvalidInput for a query that can't be answered, NotFound where nothing at or below its path is for
    the caller, and ServiceUnavailable after its time.
    """
    began = time.perf_counter()
    scope = scope_of(snapshot, caller, budget.rest)
    if not caller.shown and not _finds_anything(snapshot, scope, budget):
        raise path_not_found(question.path)
    if coverage is None:
        coverage = coverage_for(snapshot, caller, question.path)
    node = Compiler(snapshot, scope, coverage, operators, budget.look).compile(question.where)
    matching = Matching(snapshot, node, scope, budget)
    # Only a version that is walked has it: where the walk ended before the last file.
    truncated_at: Path | None = getattr(snapshot, "truncated_at", None)
    if truncated_at is not None:
        _refuse_a_part(question, node, budget)
    body: dict[str, Any] = {}
    hits: list[tuple[Document, list[Hit]]] | None = None
    if question.aggregates is not None:
        strategy = "aggregate"
        run = _aggregation(matching, coverage, question, question.aggregates)
        if question.explain != "plan":
            body.update(run())
    else:
        order = _order(question, coverage)
        paging = _paging(question, order, Cursors(database_id, order))
        if question.explain == "plan":
            strategy = choose_strategy(matching, coverage, paging)[0]
        else:
            strategy, hits = _add_rows(body, matching, coverage, question, paging, database_id)
    if question.explain is not None:
        analyzed = question.explain == "analyze"
        plan: dict[str, Any] = {"operator": "query", "strategy": strategy, "indexed": snapshot.indexed}
        if analyzed:
            plan["actual_rows"] = len(body.get("results", body.get("groups", ())))
            plan["duration_ms"] = round((time.perf_counter() - began) * 1000, 3)
        plan["children"] = [explain_tree(matching, analyzed=analyzed)]
        plan["estimated_rows"] = plan["children"][0]["estimated_rows"]
        body = {"plan": plan, **body}
    meta = _meta(snapshot, caller, question.path)
    if meta:
        body["meta"] = meta
    return Answer(body, hits)


def _refuse_a_part(question: Question, node: Node, budget: Budget) -> None:
    """Lets only those queries go on that a part of the files answers: pages in the order of the paths."""
    order = Order(question.order)
    if (
        question.aggregates is not None
        or question.include_total
        or question.before is not None
        or question.offset
        or order.fields
        or order.path_direction(scored=node.scored) != 1
    ):
        raise budget.refuse_entries()


def _finds_anything(snapshot: Snapshot, scope: Scope, budget: Budget) -> bool:
    """Whether there may be something for a caller who may not know of the directory itself.

    Where something is granted for certain, they know that it is; whether it is there makes no difference.
    """
    if any(whole for _, whole in scope.caller.parts) or len(scope.numbers) > len(scope.unchecked):
        return True
    for place, document in enumerate(snapshot.documents(scope.unchecked)):
        if place >= budget.rows:
            return False
        budget.tick()
        if scope.caller.may(document.path):
            return True
    return False


def coverage_for(snapshot: Snapshot, caller: Caller, path: Path) -> Coverage:
    """Returns what is indexed where a caller may look at and below a path: no more is for them to know."""
    if caller.sees_all or len(caller.parts) > _MOST_PARTS:
        return snapshot.coverage(path)
    found = [snapshot.coverage(part) for part, _ in caller.parts]
    if len(found) == 1:
        return found[0]
    fields: dict[str, FieldUse] = {}
    for one in found:
        for name, use in one.fields.items():
            other = fields.get(name)
            fields[name] = use if other is None else _both(other, use)
    return Coverage(fields)


def _both(left: FieldUse, right: FieldUse) -> FieldUse:
    same = left.value_types == right.value_types and left.index_types == right.index_types
    return FieldUse(
        left.name,
        left.value_types | right.value_types,
        left.index_types | right.index_types,
        same and left.everywhere and right.everywhere,
    )


def _order(question: Question, coverage: Coverage) -> Order:
    for field in question.order:
        if field.name != SCORE:
            require_field(coverage, field.name, "order_by")
    return Order(question.order)


def _paging(question: Question, order: Order, cursors: Cursors) -> Paging:
    if question.after is not None and question.before is not None:
        raise InvalidInput("A page begins behind a cursor or ends before one, not both.", field="before")
    cursor = question.after if question.before is None else question.before
    if cursor is not None and question.offset:
        raise InvalidInput("A page begins at a cursor or at an offset, not both.", field="offset")
    if question.offset + question.limit > question.most_rows:
        raise InvalidInput(
            f"A query returns at most {question.most_rows} rows; go on with the cursor of the last page.",
            field="offset",
            limit=question.most_rows,
        )
    reverse = question.before is not None
    place = None if cursor is None else cursors.decode(cursor, "before" if reverse else "after")
    return Paging(order, question.limit, question.offset, place, reverse)


def _add_rows(
    body: dict[str, Any],
    matching: Matching,
    coverage: Coverage,
    question: Question,
    paging: Paging,
    database_id: bytes,
) -> tuple[str, list[tuple[Document, list[Hit]]] | None]:
    if question.include_total:
        body["total_count"] = len(matching.settle())
    page = find_page(matching, coverage, paging)
    truncated_at: Path | None = getattr(matching.snapshot, "truncated_at", None)
    if truncated_at is not None and not page.more:
        page = page._replace(more=True, stopped_at=truncated_at)
    rows, hits = _rows(matching, coverage, question, page)
    envelope: dict[str, Any] = {"results": rows, "has_more": _has_more(page, paging)}
    envelope.update(_cursors(matching, page, paging, Cursors(database_id, paging.order)))
    if question.default_limit:
        envelope.update(default_limit_hit=True, default_limit=question.limit)
    total = body.pop("total_count", None)
    body.update(envelope)
    if total is not None:
        body["total_count"] = total
    return page.strategy, hits


def _rows(
    matching: Matching, coverage: Coverage, question: Question, page: Page
) -> tuple[list[dict[str, Any]], list[tuple[Document, list[Hit]]] | None]:
    from pyroaring import BitMap

    snapshot, node = matching.snapshot, matching.node
    projection = Projection(question.select, coverage.fields)
    rows: list[dict[str, Any]] = []
    if not (projection.tells_matches or question.include_matches or question.explain):
        # Nobody asks which conditions a row meets.
        for match in page.rows:
            matching.budget.look()
            rows.append(projection.row(match, (), snapshot))
        return rows, None
    node.prepare(BitMap([match.document.id for match in page.rows]), matching.budget)
    hits: list[tuple[Document, list[Hit]]] | None = [] if question.include_matches else None
    for match in page.rows:
        matching.budget.look()
        leaves = list(node.matched_leaves(match.document.id, match.document, snapshot))
        rows.append(projection.row(match, sorted({leaf.field for leaf in leaves}), snapshot))
        if hits is not None:
            hits.append((match.document, hits_of(match.document, leaves, snapshot)))
    return rows, hits


def _has_more(page: Page, paging: Paging) -> bool:
    # Behind a page that ends before a cursor stands the row of that cursor.
    return bool(page.rows) if paging.reverse else page.more


def _cursors(matching: Matching, page: Page, paging: Paging, cursors: Cursors) -> dict[str, str]:
    def of_row(match: Match) -> str:
        document = match.document
        deciding = paging.order.deciding(lambda name: matching.snapshot.values(document, name))
        return cursors.encode(deciding, match.score, document.path, matching.snapshot.sequence)

    def of_place(path: Path) -> str:
        deciding = paging.order.deciding(lambda _: ())  # the path and scores of 1 alone decide here
        return cursors.encode(deciding, 1.0, path, matching.snapshot.sequence)

    found: dict[str, str] = {}
    ahead, behind = ("prev_cursor", "next_cursor") if paging.reverse else ("next_cursor", "prev_cursor")
    if page.stopped_at is not None:
        found[ahead] = of_place(page.stopped_at)
    elif page.more:
        found[ahead] = of_row(page.rows[0 if paging.reverse else -1])
    if page.rows and (paging.place is not None or paging.skip):
        found[behind] = of_row(page.rows[-1 if paging.reverse else 0])
    return found


def _aggregation(matching: Matching, coverage: Coverage, question: Question, wanted: Aggregates) -> Any:
    for name in sorted(wanted.fields):
        require_field(coverage, name, "aggregate")
    if question.after is not None or question.before is not None:
        raise InvalidInput("Aggregates have no cursors; groups take limit and offset.", field="after")
    if not wanted.groups:
        return lambda: aggregate_all(matching, wanted)
    for field in question.order:
        if field.name != COUNT and field.name not in wanted.groups:
            raise InvalidInput(f"Groups are ordered by the fields of group_by and {COUNT}.", field="order_by")

    def run() -> dict[str, Any]:
        found = aggregate_groups(matching, wanted, question.order, question.limit, question.offset)
        answer: dict[str, Any] = {"groups": found.groups, "has_more": found.more}
        if question.include_total:
            answer["total_count"] = found.total
        if question.default_limit:
            answer.update(default_limit_hit=True, default_limit=question.limit)
        return answer

    return run


def _meta(snapshot: Snapshot, caller: Caller, path: Path) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if not snapshot.indexed:
        meta["unindexed"] = True
        return meta
    places = [path] if caller.sees_all else [part for part, _ in caller.parts[:_MOST_PARTS]]
    progress = next((one for place in places if (one := snapshot.progress(place)) is not None), None)
    if progress is not None:
        meta.update(_reindexing(progress, caller.sees_all))
    return meta


def _reindexing(progress: Progress, sees_all: bool) -> dict[str, Any]:
    """What is told of a reindex; how many files there are only to those who see them all."""
    meta: dict[str, Any] = {"reindexing": True}
    if sees_all:
        meta["reindexing_progress"] = round(progress.indexed / max(1, progress.total), 4)
        meta["reindexing_indexed"] = progress.indexed
        meta["reindexing_total"] = progress.total
        if progress.eta_ms is not None:
            meta["reindexing_eta"] = progress.eta_ms
    meta["reindexing_stale_since"] = progress.since_ms
    return meta
