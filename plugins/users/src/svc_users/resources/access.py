"""``/system/access``: what a user may do to a path, rule by rule."""

from __future__ import annotations

import falcon

from svc.errors import InvalidInput
from svc.plugin import context_of, parse_path, query_text, requires_root, send_json
from svc_users.explaining import explain_access

__all__ = ["AccessResource"]


class AccessResource:
    """The explanation of a decision."""

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Explains what ``user`` may do to ``path``."""
        path, user = query_text(req, "path"), query_text(req, "user")
        if path is None or user is None:
            missing = "path" if path is None else "user"
            raise InvalidInput(f"The query needs the parameter {missing}.", field=missing)
        send_json(resp, explain_access(context_of(req).database.system(), parse_path(path), user))
