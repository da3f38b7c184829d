"""Responders of the file of schedules, which is read and stored byte for byte."""

from __future__ import annotations

import falcon

from svc.plugin import SvcRequest, body_stream, send_json
from svc_tasks.models import NewSchedules
from svc_tasks.schedules.configuration import CRON
from svc_tasks.schedules.store import cron_store

__all__ = ["read_schedule_file", "store_schedule_file"]


def read_schedule_file(req: SvcRequest, resp: falcon.Response) -> None:
    """Reads it."""
    resp.content_type = falcon.MEDIA_JSON
    resp.data = cron_store(req.context).read_file()


def store_schedule_file(req: SvcRequest, resp: falcon.Response) -> None:
    """Stores it."""
    content = body_stream(req, min(CRON.maximum_bytes, req.context.limits.json_body)).read(-1)
    stored = cron_store(req.context).write_file(content, req.context.actor)
    send_json(resp, NewSchedules(stored))
