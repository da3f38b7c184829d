"""What the operations on the history answer, of a database as one caller sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from svc.plugin import Path, format_path
from svc_history.comparing import changes_page
from svc_history.files import commit_history, snapshot_history
from svc_history.log import Page, find_commit, log_page
from svc_history.models import Document, HistoryQuery, LogQuery, PageQuery
from svc_history.viewer import Viewer
from svc_history.walking import damaged_json, history_of

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["commit_answer", "history_answer", "log_answer", "rest_of", "viewer_of"]

_NOTHING_LEFT: Mapping[str, object] = {"totals": None, "changes": [], "has_more": False, "next_cursor": None}
"""Of what a commit changed whose versions were collected."""


def history_answer(call: Call, path: Path, query: HistoryQuery) -> Document:
    """Returns a part of the history of a path."""
    viewer = viewer_of(call)
    viewer.authorize(path)
    damaged: Document = {}
    if query.commits:
        history = history_of(call.database)
        page = commit_history(history, viewer, path, limit=query.limit, after=query.after)
        damaged = damaged_json(history)
    else:
        page = snapshot_history(viewer, path, limit=query.limit, after=query.after)
    return {"path": format_path(path), "history": page.rows, **rest_of(page), **damaged}


def log_answer(call: Call, path: Path, query: LogQuery) -> Document:
    """Returns a part of the log."""
    viewer = viewer_of(call)
    if path:
        viewer.authorize(path)
    history = history_of(call.database)
    page = log_page(history, viewer, path=path, fork=query.fork, limit=query.limit, after=query.after)
    return {"commits": page.rows, **rest_of(page), **damaged_json(history)}


def commit_answer(call: Call, version: str, query: PageQuery) -> Document:
    """Returns a commit with a part of what it changed."""
    viewer = viewer_of(call)
    entry = find_commit(history_of(call.database), viewer, version)
    assert entry.root is not None, "a commit of HEAD has roots"
    assert entry.parent is not None, "a commit of HEAD has roots"
    answer = entry.as_json()
    if entry.is_collected:
        return {**answer, **_NOTHING_LEFT}
    page = changes_page(viewer, entry.parent, entry.root, limit=query.limit, cursor=query.after)
    answer |= {"totals": answer["changes"], "changes": page.rows, **rest_of(page)}
    return {**answer, "truncated": True} if page.truncated else answer


def viewer_of(call: Call) -> Viewer:
    """Returns who looks: on a file one who sees everything."""
    return Viewer(call.database, call if call.is_served else None)


def rest_of(page: Page) -> Document:
    """Returns the members that say what follows a part of a list."""
    return {"has_more": page.next_cursor is not None, "next_cursor": page.next_cursor}
