"""``/version/snapshot...`` and ``/versions/snapshots...``: make, list, rename, delete."""

from __future__ import annotations

from typing import Any

import falcon
import msgspec

from svc.errors import InvalidInput, PayloadTooLarge
from svc.plugin import (
    Database,
    Hash,
    context_of,
    encode_json,
    read_json,
    requires_identity,
    requires_root,
    requires_somewhere,
    run_blocking,
    send_json,
)
from svc_versions.forks import find_fork
from svc_versions.requests import CHANGES, authorize_listing, authorize_making, settings_of
from svc_versions.snapshots import (
    Snapshot,
    create_snapshot,
    delete_snapshot,
    find_snapshot,
    list_snapshots,
    rename_snapshot,
)

__all__ = ["MakeSnapshotResource", "SnapshotListResource", "SnapshotResource", "SnapshotsResource"]


class SnapshotBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a snapshot: of HEAD, or of a fork, or of a version (a root hash in hex)."""

    name: str
    metadata: dict[str, Any] | None = None
    fork: str | None = None
    version: str | None = None


class RenameBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that renames a snapshot."""

    name: str


class MakeSnapshotResource:
    """Where snapshots are made."""

    @requires_somewhere(*CHANGES)
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes one: 201, or 200 with the one that names this version already."""
        authorize_making(req)
        settings = settings_of(req)
        body = read_json(req, SnapshotBody, settings.maximum_json)
        if len(encode_json(body.metadata)) > settings.maximum_metadata:
            raise PayloadTooLarge(
                f"The metadata may have at most {settings.maximum_metadata} bytes.",
                field="metadata",
                limit=settings.maximum_metadata,
            )
        context = context_of(req)
        root, base_sequence = _root_of(context.database, body)
        snapshot, is_new = create_snapshot(
            context.database,
            body.name,
            body.metadata,
            root=root,
            base_sequence=base_sequence,
            actor=context.actor,
        )
        send_json(resp, snapshot.as_json(), 201 if is_new else 200)


class SnapshotsResource(MakeSnapshotResource):
    """All snapshots, as the newer family shows them."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists them, newest first."""
        authorize_listing(req)
        snapshots = run_blocking(list_snapshots, context_of(req).database)
        send_json(resp, {"snapshots": [one.as_json() for one in snapshots]})


class SnapshotListResource:
    """All snapshots, as the older family shows them: a bare array."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists them, newest first."""
        authorize_listing(req)
        snapshots = run_blocking(list_snapshots, context_of(req).database)
        send_json(resp, [one.as_json() for one in snapshots])


class SnapshotResource:
    """One snapshot."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Describes it."""
        authorize_listing(req, Snapshot.missing(name))
        send_json(resp, find_snapshot(context_of(req).database, name).as_json())

    @requires_root
    def on_patch(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Renames it."""
        body = read_json(req, RenameBody, settings_of(req).maximum_json)
        context = context_of(req)
        snapshot = rename_snapshot(context.database, name, body.name, actor=context.actor)
        send_json(resp, snapshot.as_json())

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Deletes it."""
        context = context_of(req)
        snapshot = delete_snapshot(context.database, name, actor=context.actor)
        send_json(resp, {"deleted": True, "name": snapshot.name})


def _root_of(database: Database, body: SnapshotBody) -> tuple[Hash | None, int | None]:
    """The version that is to be named, None for HEAD; and of a fork's state the fork's base sequence."""
    if body.fork is not None and body.version is not None:
        raise InvalidInput("A snapshot is of a fork or of a version, not of both.", field="version")
    if body.version is not None:
        return database.resolve_version(version=body.version), None
    if body.fork is not None:
        fork = find_fork(database, body.fork)
        return fork.root, fork.base_sequence
    return None, None
