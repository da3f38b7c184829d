"""``/system/lifecycle``: whether snapshots are made, and how long they are kept."""

from __future__ import annotations

import falcon

from svc.plugin import context_of, read_json, requires_identity, requires_root, send_json
from svc_versions.documents import read_state
from svc_versions.lifecycle import LifecycleChange, change_lifecycle, lifecycle_of
from svc_versions.requests import settings_of

__all__ = ["LifecycleResource"]


class LifecycleResource:
    """The lifecycle settings of the database."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Shows them."""
        send_json(resp, lifecycle_of(read_state(context_of(req).database)[2]))

    @requires_root
    def on_put(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Changes them; what the body leaves out stays."""
        change = read_json(req, LifecycleChange, settings_of(req).maximum_json)
        context = context_of(req)
        send_json(resp, change_lifecycle(context.database, change, actor=context.actor))
