"""The responder that collects garbage."""

from __future__ import annotations

import falcon
from msgspec.structs import asdict

from svc.errors import InvalidInput
from svc.plugin import SvcRequest, has_body, read_parameters, send_json
from svc_task_gc.configuration import GcConfiguration
from svc_task_gc.models import GcQuery
from svc_task_gc.process import collect_in_process

__all__ = ["collect_garbage"]


def collect_garbage(req: SvcRequest, resp: falcon.Response) -> None:
    """Collects in a process of its own, and answers when it has ended."""
    unknown = [name for name in req.params if name not in GcQuery.__struct_fields__]
    if unknown or has_body(req):
        # What was meant to be a dry run must not be taken for the real one.
        raise InvalidInput(
            "This takes the query parameters dry_run and keep_days, no others, and no body.",
            field=unknown[0] if unknown else "body",
        )
    context = req.context
    request = {**asdict(read_parameters(req, GcQuery)), "actor": context.actor}
    settings = context.configuration or GcConfiguration()
    # Not in a thread: under gevent only that of the loop can wait for processes, and it blocks nobody.
    send_json(resp, collect_in_process(context.database, settings, request))
