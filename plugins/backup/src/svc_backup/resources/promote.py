"""``POST /versions/promote``: a version becomes HEAD."""

from __future__ import annotations

import falcon
import msgspec

from svc.errors import InvalidInput
from svc.plugin import context_of, parse_hash, read_json, requires_root, send_json
from svc_backup.promoting import promote_version

__all__ = ["PromoteBody", "PromoteResource"]


class PromoteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body."""

    hash: str


class PromoteResource:
    """Makes versions HEAD."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Moves HEAD to a version that the database holds."""
        context = context_of(req)
        body = read_json(req, PromoteBody)
        root = parse_hash(body.hash)
        if root is None:
            raise InvalidInput("A version is a root hash of 64 hex digits.", field="hash")
        before = context.database.head().root
        promote_version(context.database, root, actor=context.actor)
        head = root.hex()
        send_json(resp, {"promoted": True, "head": head, "version": head, "previous": before.hex()})
