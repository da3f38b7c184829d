"""``/query/status`` and ``/query/rebuild``: how the index is doing, and a way to make it anew."""

from __future__ import annotations

import time
from functools import partial

import falcon

from svc.plugin import (
    Operation,
    SvcRequest,
    format_path,
    is_system_path,
    parse_path,
    path_not_found,
    query_number,
    query_text,
    read_json,
    requires_identity,
    requires_root,
    send_json,
)
from svc_query.asking import sees_everything, settings_of
from svc_query.bodies import RebuildBody
from svc_query.resources.querying import asker_of

__all__ = ["RebuildResource", "StatusResource"]

_MOST_ROWS = 1_000
_DEFAULT_ROWS = 100


class StatusResource:
    """What is indexed at and below a directory, and what could not be."""

    @requires_identity
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Answers configurations, indexes, jobs and failures, to who may read or configure all of it."""
        from svc_query.indexing import read_status

        context = req.context
        path = parse_path(query_text(req, "path") or "/")
        if is_system_path(path):
            raise path_not_found(path)
        if not context.identity.is_unrestricted_root and not (
            context.may_below(Operation.READ, path) or context.may_below(Operation.CONFIGURE, path)
        ):
            # Names and numbers of files below are for those only who may see all of them.
            context.authorize(Operation.CONFIGURE, path)
            raise path_not_found(path)
        if path and context.database.at().get(path) is None:
            raise path_not_found(path)
        limit = query_number(req, "limit", _DEFAULT_ROWS, minimum=1, maximum=_MOST_ROWS) or _DEFAULT_ROWS
        after = query_text(req, "after")
        asker = asker_of(req)
        wait_until = time.monotonic() + settings_of(asker.context).wait_seconds
        may_read = None if sees_everything(context.identity) else partial(context.may, Operation.READ)
        answer = read_status(context.database, path, after, limit, may_read=may_read, wait_until=wait_until)
        send_json(resp, answer)


class RebuildResource:
    """A rebuild of the index."""

    @requires_root
    def on_post(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Begins to index everything at and below ``path`` anew; the status shows how far that has come."""
        from svc_query.indexing import rebuild

        body = read_json(req, RebuildBody, req.context.limits.json_body)
        path = parse_path(body.path)
        if is_system_path(path):
            raise path_not_found(path)
        if path and req.context.database.at().get(path) is None:
            raise path_not_found(path)
        rebuild(req.context.database, path)
        send_json(resp, {"rebuilding": True, "path": format_path(path)}, status=202)
