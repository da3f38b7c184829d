"""What streams: comparisons, and the lines of blame."""

from __future__ import annotations

import falcon

from svc.errors import InvalidInput
from svc.plugin import (
    EntryKind,
    Path,
    SvcRequest,
    format_path,
    parse_path,
    parse_time,
    path_not_found,
    read_parameters,
    run_blocking,
    send_json,
    send_json_items,
)
from svc_history.answers import rest_of, viewer_of
from svc_history.blaming import (
    BlameLimits,
    blame_entries,
    blame_lines,
    entry_json,
    line_items,
    starting_point,
)
from svc_history.comparing import Comparison, changes_page
from svc_history.models import BlameQuery, CompareQuery, Document
from svc_history.walking import damaged_json, history_of

__all__ = ["blame_path", "compare_versions"]


def compare_versions(req: SvcRequest, resp: falcon.Response) -> None:
    """Streams what differs between ``from`` and ``to``, in path order; with a limit, a part of it."""
    query = read_parameters(req, CompareQuery)
    viewer = viewer_of(req.context)
    if not query.source:
        raise InvalidInput("The parameter from names a version.", field="from")
    before = viewer.database.named_version(query.source)
    after = viewer.database.named_version(query.to or "HEAD")
    hold = viewer.database.hold_version(before, after)
    path = parse_path(query.path or "/")
    if path:
        viewer.authorize(path)
    if query.limit is not None:
        with hold:
            page = changes_page(viewer, before, after, limit=query.limit, cursor=query.after, path=path)
        answer: Document = {"changes": page.rows, "from": before.hex(), "to": after.hex(), "totals": None}
        answer |= rest_of(page)
        send_json(resp, {**answer, "truncated": True} if page.truncated else answer)
        return
    comparison = Comparison(viewer, before, after, path)
    send_json_items(resp, "changes", comparison.items(), comparison.summary, hold=hold)


def blame_path(req: SvcRequest, resp: falcon.Response, path: Path) -> None:
    """The origin of each line of a text; of a directory, and of any other file, the last commits."""
    query = read_parameters(req, BlameQuery)
    viewer = viewer_of(req.context)
    viewer.authorize(path)
    history = history_of(viewer.database)
    at = None if query.at is None else parse_time(query.at)
    root = viewer.database.resolve_version(snapshot=query.snapshot, version=query.version, at=at)
    version = viewer.database.version_of(root)
    entry = version.get(path) if path else None
    head: Document = {"path": format_path(path), "version": root.hex()}
    if not path or (entry is not None and entry.kind is EntryKind.DIRECTORY):
        if path and not viewer.shows(path, directory=True):
            raise path_not_found(path)
        page = blame_entries(history, viewer, version, path, limit=query.limit, after=query.after)
        head |= {"entry_type": int(EntryKind.DIRECTORY), "entries": page.rows}
        send_json(resp, {**head, **rest_of(page), **damaged_json(history)})
        return
    if entry is None or not viewer.shows(path):
        raise path_not_found(path)
    settings = req.context.configuration
    limits = BlameLimits(settings.blame_size, settings.blame_scan)
    with viewer.database.hold_version(root):
        blame = run_blocking(blame_lines, history, viewer, version, path, entry, limits)
    head["entry_type"] = int(entry.kind)
    if blame is None:
        start = starting_point(viewer.database, root)
        rows = [entry_json(history, viewer, path, entry, start)]
        more = {"has_more": False, "next_cursor": None, **damaged_json(history)}
        send_json(resp, {**head, "entries": rows, **more})
        return
    truncated = blame.truncated
    send_json_items(
        resp,
        "lines",
        line_items(blame, path, with_text=query.text),
        lambda: {**head, "truncated": truncated, **damaged_json(history)},
    )
