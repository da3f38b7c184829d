"""``/query``, ``/files/query`` and ``/files/search``."""

from __future__ import annotations

import falcon

from svc.plugin import Operation, SvcRequest, read_json, requires_in_body, send_json
from svc_query.asking import Asker
from svc_query.bodies import QueryBody, SearchBody

__all__ = ["QueryResource", "SearchResource", "asker_of"]


class QueryResource:
    """Queries of one directory and everything below it."""

    @requires_in_body(Operation.READ)
    def on_post(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Answers rows, aggregates or a plan, of the files that the caller may read."""
        body = read_json(req, QueryBody, req.context.limits.json_body)
        send_json(resp, asker_of(req).query(body))


class SearchResource:
    """Searches over everything that the caller may read."""

    @requires_in_body(Operation.READ)
    def on_post(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Answers the files that match best, with snippets."""
        body = read_json(req, SearchBody, req.context.limits.json_body)
        send_json(resp, asker_of(req).search(body))


def asker_of(req: SvcRequest) -> Asker:
    """Returns who asks which database by a request."""
    context = req.context
    if context.plugin is None:
        raise RuntimeError("This route belongs to no plugin that is in use.")
    return Asker.of(context.database, context.plugin, context.identity)
