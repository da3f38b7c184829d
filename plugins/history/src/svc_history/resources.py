"""The routes of the history: file history, log, commits, comparisons and blame."""

from __future__ import annotations

from typing import Any

import falcon

from svc.errors import InvalidInput
from svc.plugin import (
    EntryKind,
    Hash,
    Operation,
    Path,
    context_of,
    format_path,
    parse_path,
    parse_time,
    path_not_found,
    query_flag,
    query_text,
    requires_any,
    requires_identity,
    run_blocking,
    send_json,
    send_json_items,
)
from svc_history.blaming import (
    BlameLimits,
    blame_entries,
    blame_lines,
    entry_json,
    line_items,
    starting_point,
)
from svc_history.comparing import Comparison, changes_page
from svc_history.configuration import HistoryConfiguration
from svc_history.files import commit_history, snapshot_history
from svc_history.log import find_commit, log_page
from svc_history.viewer import Viewer
from svc_history.walking import damaged_json, history_of

__all__ = [
    "BlameResource",
    "CommitResource",
    "CompareResource",
    "FileHistoryResource",
    "LogResource",
]

MOST_ROWS = 1_000
DEFAULT_ROWS = 20


_NOTHING_LEFT: dict[str, Any] = {"totals": None, "changes": [], "has_more": False, "next_cursor": None}
"""Of what a commit changed whose versions were collected."""


class FileHistoryResource:
    """What became of one path."""

    @requires_any(Operation.READ, Operation.LIST, path="path")
    def on_get(self, req: falcon.Request, resp: falcon.Response, path: Path) -> None:
        """The history over the snapshots, or with ``commits`` over every commit that touched the path."""
        viewer = _viewer(req)
        viewer.authorize(path)
        damaged: dict[str, list[int]] = {}
        limit, after = _limit(req, MOST_ROWS), query_text(req, "after")
        if query_flag(req, "commits"):
            history = history_of(viewer.database)
            page = commit_history(history, viewer, path, limit=limit, after=after)
            damaged = damaged_json(history)
        else:
            page = snapshot_history(viewer, path, limit=limit, after=after)
        send_json(
            resp,
            {
                "path": format_path(path),
                "history": page.rows,
                "has_more": page.next_cursor is not None,
                "next_cursor": page.next_cursor,
                **damaged,
            },
        )


class LogResource:
    """The commits of HEAD or of a fork."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """A page of the log, newest first; of the commits that touched ``path`` where it is given."""
        viewer = _viewer(req)
        history = history_of(viewer.database)
        page = log_page(
            history,
            viewer,
            path=_path(req, viewer),
            fork=query_text(req, "fork"),
            limit=_limit(req, DEFAULT_ROWS),
            after=query_text(req, "after"),
        )
        send_json(
            resp,
            {
                "commits": page.rows,
                "has_more": page.next_cursor is not None,
                "next_cursor": page.next_cursor,
                **damaged_json(history),
            },
        )


class CommitResource:
    """One commit."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response, version: str) -> None:
        """The commit that made a version, with a page of what it changed."""
        viewer = _viewer(req)
        entry = find_commit(history_of(viewer.database), viewer, version)
        assert entry.root is not None, "a commit of HEAD has roots"
        assert entry.parent is not None, "a commit of HEAD has roots"
        if entry.is_collected:
            send_json(resp, {**entry.as_json(), **_NOTHING_LEFT})
            return
        page = changes_page(
            viewer, entry.parent, entry.root, limit=_limit(req, MOST_ROWS), cursor=query_text(req, "after")
        )
        answer = entry.as_json()
        answer.update(
            totals=answer["changes"],
            changes=page.rows,
            has_more=page.next_cursor is not None,
            next_cursor=page.next_cursor,
        )
        if page.truncated:
            answer["truncated"] = True
        send_json(resp, answer)


class CompareResource:
    """Two versions side by side."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Streams what differs between ``from`` and ``to`` (HEAD when it is not given), in path order."""
        viewer = _viewer(req)
        before = _named(req, viewer, "from", None)
        after = _named(req, viewer, "to", "HEAD")
        hold = viewer.database.hold_version(before, after)
        comparison = Comparison(viewer, before, after, _path(req, viewer))
        send_json_items(resp, "changes", comparison.items(), comparison.summary, hold=hold)


class BlameResource:
    """Where a file's lines, or a directory's entries, come from."""

    @requires_any(Operation.READ, Operation.LIST, path="path")
    def on_get(self, req: falcon.Request, resp: falcon.Response, path: Path) -> None:
        """The origin of each line of a text; of a directory, and of any other file, the last commits."""
        viewer = _viewer(req)
        viewer.authorize(path)
        history = history_of(viewer.database)
        root = viewer.database.resolve_version(
            snapshot=query_text(req, "snapshot"), version=query_text(req, "version"), at=_time(req)
        )
        version = viewer.database.version_of(root)
        entry = version.get(path) if path else None
        head: dict[str, Any] = {"path": format_path(path), "version": root.hex()}
        if not path or (entry is not None and entry.kind is EntryKind.DIRECTORY):
            if path and not viewer.shows(path, directory=True):
                raise path_not_found(path)
            page = blame_entries(
                history, viewer, version, path, limit=_limit(req, MOST_ROWS), after=query_text(req, "after")
            )
            more = {
                "has_more": page.next_cursor is not None,
                "next_cursor": page.next_cursor,
                **damaged_json(history),
            }
            send_json(resp, {**head, "entry_type": int(EntryKind.DIRECTORY), "entries": page.rows, **more})
            return
        if entry is None or not viewer.shows(path):
            raise path_not_found(path)
        limits = _blame_limits(req)
        with viewer.database.hold_version(root):
            blame = run_blocking(blame_lines, history, viewer, version, path, entry, limits)
        head["entry_type"] = int(entry.kind)
        if blame is None:
            start = starting_point(viewer.database, root)
            rows = [entry_json(history, viewer, path, entry, start)]
            more = {"has_more": False, "next_cursor": None, **damaged_json(history)}
            send_json(resp, {**head, "entries": rows, **more})
            return
        with_text = query_text(req, "text") is None or query_flag(req, "text")
        truncated = blame.truncated
        send_json_items(
            resp,
            "lines",
            line_items(blame, path, with_text=with_text),
            lambda: {**head, "truncated": truncated, **damaged_json(history)},
        )


def _blame_limits(req: falcon.Request) -> BlameLimits:
    configuration = req.context.configuration
    settings = configuration if isinstance(configuration, HistoryConfiguration) else HistoryConfiguration()
    return BlameLimits(settings.blame_size, settings.blame_scan)


def _viewer(req: falcon.Request) -> Viewer:
    context = context_of(req)
    return Viewer(context.database, context)


def _path(req: falcon.Request, viewer: Viewer) -> Path:
    path = parse_path(query_text(req, "path") or "/")
    if path:
        viewer.authorize(path)
    return path


def _named(req: falcon.Request, viewer: Viewer, name: str, default: str | None) -> Hash:
    value = query_text(req, name) or default
    if value is None:
        raise InvalidInput(f"The parameter {name} names a version.", field=name)
    return viewer.database.named_version(value)


def _time(req: falcon.Request) -> int | None:
    value = query_text(req, "at")
    return None if value is None else parse_time(value)


def _limit(req: falcon.Request, default: int) -> int:
    value = query_text(req, "limit")
    if value is None:
        return default
    if not (value.isascii() and value.isdigit()) or len(value) > 9 or not 1 <= int(value) <= MOST_ROWS:
        raise InvalidInput(
            f"The parameter limit is a number from 1 to {MOST_ROWS}.", field="limit", limit=MOST_ROWS
        )
    return int(value)
