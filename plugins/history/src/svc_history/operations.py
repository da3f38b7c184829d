"""The operations on the history: file history, log, commits, comparisons and blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import NotFound
from svc.plugin import (
    Operation,
    Path,
    Weight,
    operation,
    parse_path,
    requires_any,
    requires_identity,
)
from svc_history.models import (
    Blame,
    BlameQuery,
    CommitDetails,
    CommitPage,
    CompareQuery,
    Comparison,
    HistoryPage,
    HistoryQuery,
    LogQuery,
    PageQuery,
    TextComparison,
    TextQuery,
)

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = [
    "blame_path",
    "compare_texts",
    "compare_versions",
    "list_commits",
    "show_commit",
    "show_history",
]

_SEEN = requires_any(Operation.READ, Operation.LIST, path="path")


@operation(
    "GET",
    "/versions/file-history/{path:path}",
    _SEEN,
    older=("/version/file-history/{path:path}", "/versions/history/{path:path}"),
    errors=(NotFound,),
    weight=Weight.DEAR,
)
def show_history(call: Call, path: Path, query: HistoryQuery = HistoryQuery()) -> HistoryPage:
    """Shows what became of a path over the snapshots, or over every commit that touched it."""
    from svc_history.answers import history_answer

    return history_answer(call, path, query)  # type: ignore[return-value] # written as it is


@operation("GET", "/versions/log", requires_identity, errors=(NotFound,), weight=Weight.DEAR)
def list_commits(call: Call, query: LogQuery = LogQuery()) -> CommitPage:
    """Lists the commits of HEAD or of a fork, newest first; or those that touched a path."""
    from svc_history.answers import log_answer

    return log_answer(call, parse_path(query.path or "/"), query)  # type: ignore[return-value] # as above


@operation("GET", "/versions/commits/{version}", requires_identity, weight=Weight.DEAR)
def show_commit(call: Call, version: str, query: PageQuery = PageQuery()) -> CommitDetails:
    """Shows the commit that made a version, with a part of what it changed."""
    from svc_history.answers import commit_answer

    return commit_answer(call, version, query)  # type: ignore[return-value] # as above


@operation(
    "GET",
    "/versions/compare",
    requires_identity,
    errors=(NotFound,),
    weight=Weight.STREAMING,
    responder="svc_history.responders:compare_versions",
)
def compare_versions(call: Call, query: CompareQuery) -> Comparison:
    """Streams what differs between two versions, in path order; or lists a part of it."""


@operation("GET", "/versions/compare-text/{path:path}", _SEEN, errors=(NotFound,), weight=Weight.DEAR)
def compare_texts(call: Call, path: Path, query: TextQuery) -> TextComparison:
    """Shows which lines of a text differ between two versions."""
    from svc_history.texts import text_comparison

    return text_comparison(call, path, query)


@operation(
    "GET",
    "/versions/blame/{path:path}",
    _SEEN,
    errors=(NotFound,),
    weight=Weight.DEAR,
    responder="svc_history.responders:blame_path",
)
def blame_path(call: Call, path: Path, query: BlameQuery = BlameQuery()) -> Blame:
    """Shows which commit each line of a text comes from; of anything else the last commits of its entries."""
