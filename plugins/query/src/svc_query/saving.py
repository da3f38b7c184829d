"""Files that the plugin stores for a caller: saved searches, and configurations of indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import Conflict, InvalidInput, InvalidPath
from svc.plugin import (
    Condition,
    EntryKind,
    Operation,
    format_path,
    is_system_path,
    parse_path,
    path_not_found,
)
from svc_query.index_configuration import CONFIGURATION_SUFFIX
from svc_query.models import IndexConfigurationBody, QueryBody, SavedSearch, SaveSearchBody, SearchBody

if TYPE_CHECKING:
    from svc.plugin import Call, Path

__all__ = ["SEARCH_TYPE", "configure_index", "read_request", "save_search"]

SEARCH_TYPE = "application/vnd.svc.search+json"
"""The media type of a file that holds the request of a query or a search."""


def save_search(call: Call, body: SaveSearchBody) -> SavedSearch:
    """Stores a request as a file; see the operation."""
    path = parse_path(body.path)
    if is_system_path(path):
        raise path_not_found(path)
    if not path or body.path.endswith("/"):
        raise InvalidPath("A search is saved as a file: give it a name.", path=body.path)
    request = read_request(body.request)
    content = msgspec.json.format(msgspec.json.encode(request), indent=2) + b"\n"
    is_new = _store(call, path, content, SEARCH_TYPE, f"save the search {path[-1]}")
    return SavedSearch(format_path(path), is_new)


def configure_index(call: Call, body: IndexConfigurationBody) -> SavedSearch:
    """Stores the configuration of a directory; see the operation."""
    directory = parse_path(body.path)
    if is_system_path(directory):
        raise path_not_found(directory)
    path = (*directory, *CONFIGURATION_SUFFIX)
    content = msgspec.json.format(msgspec.json.encode(body.configuration), indent=2) + b"\n"
    is_new = _store(
        call, path, content, "application/json", f"configure the index of {format_path(directory)}"
    )
    return SavedSearch(format_path(path), is_new)


def _store(call: Call, path: Path, content: bytes, content_type: str, message: str) -> bool:
    """Stores a file and returns whether it is new. Who may do neither learns nothing of what is there."""
    entry = call.database.at().get(path)
    may_any = call.may(Operation.CREATE, path) or call.may(Operation.UPDATE, path)
    call.authorize(Operation.UPDATE if entry is not None and may_any else Operation.CREATE, path)
    if entry is not None and entry.kind is not EntryKind.FILE:
        raise Conflict("Something else than a file is at the path.", path=format_path(path))
    condition = Condition(if_none_match=("*",)) if entry is None else Condition(if_match=(entry.hash.hex(),))
    with call.database.transaction(actor=call.actor, message=message) as changes:
        changes.put(path, content, content_type=content_type, condition=condition)
    return entry is None


def read_request(said: dict[str, Any]) -> QueryBody | SearchBody:
    """Returns the request that an object is: a query, or a search where it has words or says no filter.

    Raises:
        InvalidInput: it is none.
    """
    try:
        # Without words it is a query, which can do more; but a query says its path and its filter.
        is_query = "query" not in said and "where" in said
        return msgspec.convert(said, QueryBody) if is_query else msgspec.convert(said, SearchBody)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"This is no request: {str(error).replace('`', '')}.", field="body") from None
