"""``/system/cron`` and ``/.config/cron.json``: two views of the schedules."""

from __future__ import annotations

from typing import Any

import falcon
import msgspec
from msgspec import UNSET, UnsetType

from svc.plugin import SvcRequest, body_stream, read_json, requires_root, send_json
from svc_tasks.api import TASK_TYPES
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.schedules.configuration import MAXIMUM_BYTES, Schedule
from svc_tasks.schedules.store import CronStore

__all__ = ["CronFileResource", "CronResource", "ScheduleChange", "ScheduleResource"]


class ScheduleChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body that changes a schedule; what it leaves out stays."""

    task_type: str | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    args: dict[str, Any] | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class CronResource:
    """All schedules."""

    @requires_root
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Lists them in the order of the file."""
        store = _store(req)
        send_json(resp, {"schedules": [store.answer(one) for one in store.schedules()]})

    @requires_root
    def on_post(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Adds one: 201."""
        store = _store(req)
        send_json(resp, store.answer(store.add(read_json(req, Schedule), req.context.actor)), 201)


class ScheduleResource:
    """One schedule."""

    @requires_root
    def on_get(self, req: SvcRequest, resp: falcon.Response, schedule: str) -> None:
        """Shows it."""
        store = _store(req)
        send_json(resp, store.answer(store.get(schedule)))

    @requires_root
    def on_patch(self, req: SvcRequest, resp: falcon.Response, schedule: str) -> None:
        """Changes what the body names."""
        store = _store(req)
        body = read_json(req, ScheduleChange)
        members = {
            name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not UNSET
        }
        send_json(resp, store.answer(store.update(schedule, members, req.context.actor)))

    @requires_root
    def on_delete(self, req: SvcRequest, resp: falcon.Response, schedule: str) -> None:
        """Removes it; a task that it has enqueued stays."""
        removed = _store(req).remove(schedule, req.context.actor)
        send_json(resp, {"deleted": True, **msgspec.to_builtins(removed)})


class CronFileResource:
    """The file of schedules, byte for byte."""

    @requires_root
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Reads it."""
        resp.content_type = falcon.MEDIA_JSON
        resp.data = _store(req).read_file()

    @requires_root
    def on_put(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Stores it; a file that is not valid is refused, and the old one stays."""
        content = body_stream(req, min(MAXIMUM_BYTES, req.context.limits.json_body)).read(-1)
        stored = _store(req).write_file(content, req.context.actor)
        send_json(resp, {"schedules": msgspec.to_builtins(stored)})


def _store(req: SvcRequest) -> CronStore:
    configuration = req.context.configuration or TasksConfiguration()
    return CronStore(req.context.database, req.context.extensions(TASK_TYPES), configuration.timezone)
