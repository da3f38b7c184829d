"""The operations of queries, searches and the state of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import Conflict, NotFound, ServiceUnavailable
from svc.plugin import (
    Operation,
    Weight,
    format_path,
    is_system_path,
    operation,
    parse_path,
    requires_identity,
    requires_in_body,
    requires_root,
)
from svc_query.models import (
    IndexConfigurationBody,
    IndexStatus,
    QueryAnswer,
    QueryBody,
    RebuildBody,
    Rebuilding,
    SavedSearch,
    SaveSearchBody,
    SearchAnswer,
    SearchBody,
    StatusQuery,
)

if TYPE_CHECKING:
    from svc.plugin import Call, Path

__all__ = [
    "configure_index",
    "query_files",
    "rebuild_index",
    "save_search",
    "search_files",
    "show_index_status",
]


@operation(
    "POST",
    "/files/query",
    requires_in_body(Operation.READ),
    older=("/query",),
    errors=(NotFound, ServiceUnavailable),
    weight=Weight.DEAR,
    time_limit="query_seconds",
    repeatable=True,
    reads=True,
)
def query_files(call: Call, body: QueryBody) -> QueryAnswer:
    """Answers rows, aggregates or a plan of the files that the caller may read."""
    from svc_query.asking import Asker

    return Asker.of_call(call, body).query(body)  # type: ignore[return-value] # written as it is


@operation(
    "POST",
    "/files/search",
    requires_in_body(Operation.READ),
    errors=(NotFound, ServiceUnavailable),
    weight=Weight.DEAR,
    time_limit="query_seconds",
    repeatable=True,
    reads=True,
)
def search_files(call: Call, body: SearchBody) -> SearchAnswer:
    """Answers the files that match best, with snippets, of all that the caller may read."""
    from svc_query.asking import Asker

    return Asker.of_call(call, body).search(body)  # type: ignore[return-value] # written as it is


@operation(
    "POST",
    "/query/searches",
    requires_in_body(Operation.CREATE, Operation.UPDATE),
    status=201,
    errors=(NotFound, Conflict),
    weight=Weight.SMALL,
    maximum_body=256 * 1024,
)
def save_search(call: Call, body: SaveSearchBody) -> SavedSearch:
    """Saves the request of a query or a search as a file, which is found by its media type."""
    from svc_query import saving

    return saving.save_search(call, body)


@operation("GET", "/query/status", requires_identity, errors=(NotFound,), weight=Weight.DEAR)
def show_index_status(call: Call, query: StatusQuery = StatusQuery()) -> IndexStatus:
    """Shows configurations, indexes, jobs and failures to who may read or configure all of a directory."""
    from svc_query.asking import index_status

    path = parse_path(query.path or "/")
    _require_something(call, path)
    return index_status(call, path, query)  # type: ignore[return-value] # written as it is


@operation(
    "POST",
    "/query/configuration",
    requires_in_body(Operation.CONFIGURE),
    status=201,
    errors=(NotFound, Conflict),
    weight=Weight.DEAR,
    maximum_body=256 * 1024,
)
def configure_index(call: Call, body: IndexConfigurationBody) -> SavedSearch:
    """Stores the ``indexes.json`` of a directory; one that is not good is refused."""
    from svc_query import saving

    return saving.configure_index(call, body)


@operation("POST", "/query/rebuild", requires_root, status=202, errors=(NotFound,), weight=Weight.DEAR)
def rebuild_index(call: Call, body: RebuildBody) -> Rebuilding:
    """Indexes everything at and below a path anew; a server begins to, and the status shows how far it is."""
    from svc_query.indexing import finish_work, rebuild

    path = parse_path(body.path)
    _require_something(call, path)
    rebuild(call.database, path)
    if not call.is_served:
        from svc_cli import progress_bar

        with progress_bar("Indexing") as progress:
            finish_work(call.database, progress=progress)
    return Rebuilding(call.is_served, format_path(path))


def _require_something(call: Call, path: Path) -> None:
    """Lets a call go on only where something is that the caller may know of."""
    from svc.plugin import path_not_found

    if is_system_path(path):
        raise path_not_found(path)
    if not call.identity.is_unrestricted_root and not (
        call.may_below(Operation.READ, path) or call.may_below(Operation.CONFIGURE, path)
    ):
        # Names and numbers of files below are for those only who may see all of them.
        call.authorize(Operation.CONFIGURE, path)
        raise path_not_found(path)
    if path and call.database.at().get(path) is None:
        raise path_not_found(path)
