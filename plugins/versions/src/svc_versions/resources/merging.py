"""``/versions/merge``: a fork or a snapshot into HEAD, or into a fork."""

from __future__ import annotations

from typing import Annotated, Literal

import falcon
import msgspec

from svc.errors import Forbidden
from svc.plugin import (
    Entry,
    EntryKind,
    Operation,
    Path,
    RequestContext,
    Version,
    context_of,
    format_path,
    read_json,
    requires_identity,
    send_json,
)
from svc_versions.merging import MergeLimits, merge_versions
from svc_versions.names import HEAD
from svc_versions.requests import authorize_making, settings_of
from svc_versions.tree_edits import Edit

__all__ = ["MergeResource"]


class MergeBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a merge."""

    from_: str = msgspec.field(name="from")
    into: str = HEAD
    strategy: Literal["fail", "ours", "theirs"] = "fail"
    message: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None
    dry_run: bool = False


class MergeResource:
    """Merges."""

    @requires_identity
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Merges three-way; 409 lists the conflicts. Into HEAD is root's."""
        authorize_making(req)
        settings = settings_of(req)
        body = read_json(req, MergeBody, settings.maximum_json)
        context = context_of(req)
        is_root = context.identity.is_unrestricted_root
        if body.into == HEAD:
            context.authorize_root()
        outcome = merge_versions(
            context.database,
            body.from_,
            body.into,
            body.strategy,
            message=body.message,
            actor=context.actor,
            permit=None if is_root else _Permits(context),
            shows=None if is_root else lambda path: context.may(Operation.READ, path),
            dry_run=body.dry_run,
            limits=MergeLimits(settings.conflicts_listed, settings.merge_nodes),
        )
        version = outcome.version.hex()
        resp.set_header("X-Svc-Version", version)
        send_json(
            resp,
            {
                "merged": not body.dry_run,
                "dry_run": body.dry_run,
                "from": body.from_,
                "into": body.into,
                "version": version,
                "base": None if outcome.base is None else outcome.base.hex(),
                "changes": outcome.counts.as_json(),
                "fast_forward": outcome.fast_forward,
                "conflicts_resolved": outcome.conflicts,
            },
        )


class _Permits:
    """Asks for each path that a merge into a fork would change whether the caller may change it so.

    What a snapshot brings back that HEAD has no more needs the permission to see deleted files too.
    """

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._head: Version | None = None

    def __call__(self, edits: list[Edit], ours: Version, theirs: Version) -> None:
        database = self._context.database
        head = database.at()
        is_present = theirs.root == head.root or theirs.root in {root for _, root in database.refs("forks")}
        self._head = None if is_present else head
        for edit in edits:
            if _is_directory(edit.before) and _is_directory(edit.after):
                # The directory stays, and what was in it goes: else its entries have edits of their own.
                self._require_inside(Operation.DELETE, ours, edit.path)
                continue
            if (
                edit.before is not None
                and edit.after is not None
                and not (_is_directory(edit.before) or _is_directory(edit.after))
            ):
                self._require(Operation.UPDATE, edit.path)
                continue
            if edit.before is not None:
                self._require_below(Operation.DELETE, ours, edit.path, edit.before)
            if edit.after is not None:
                self._require_below(Operation.CREATE, theirs, edit.path, edit.after)

    def _require_below(self, operation: Operation, version: Version, path: Path, entry: Entry) -> None:
        self._require(operation, path)
        if entry.kind is EntryKind.DIRECTORY and version.get(path) is not None:
            self._require_inside(operation, version, path)

    def _require_inside(self, operation: Operation, version: Version, path: Path) -> None:
        if not self._may_below(operation, path):
            for below, _ in version.walk(path):
                self._require(operation, below)

    def _may_below(self, operation: Operation, path: Path) -> bool:
        may_below = self._context.may_below
        return may_below(operation, path) and may_below(Operation.DELETE, path)

    def _require(self, operation: Operation, path: Path) -> None:
        if operation is Operation.CREATE and self._head is not None and self._head.get(path) is None:
            self._require(Operation.DELETE, path)
        if self._context.may(operation, path):
            return
        if not self._context.may(Operation.READ, path):
            raise Forbidden("The merge changes paths that you may not change.")
        raise Forbidden(f"You may not {operation.name.lower()} this path.", path=format_path(path))


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.DIRECTORY
