"""The operations on snapshots, forks, restore, merge and lifecycle settings.

``/version/...`` is the older family of URLs. Its lists are bare arrays, so they are operations of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PayloadTooLarge
from svc.plugin import (
    Created,
    Operation,
    Weight,
    encode_json,
    format_path,
    operation,
    requires_account,
    requires_identity,
    requires_root,
    requires_somewhere,
)
from svc_versions.models import (
    AbandonedFork,
    DeletedSnapshot,
    Fork,
    ForkList,
    ForkQuery,
    Lifecycle,
    LifecycleChange,
    Merge,
    MergeBody,
    NewFork,
    NewSnapshot,
    PathRestore,
    PathRestoreBody,
    Promotion,
    PromotionBody,
    PromotionQuery,
    ResolvedVersion,
    ResolveQuery,
    Snapshot,
    SnapshotList,
    SnapshotName,
    SnapshotRestore,
)

if TYPE_CHECKING:
    from svc.plugin import Call, Path

__all__ = [
    "abandon_fork",
    "change_lifecycle",
    "create_fork",
    "create_snapshot",
    "delete_snapshot",
    "list_fork_array",
    "list_forks",
    "list_snapshot_array",
    "list_snapshots",
    "merge_versions",
    "promote_fork",
    "rename_snapshot",
    "resolve_version",
    "restore_path",
    "restore_snapshot",
    "show_fork",
    "show_lifecycle",
    "show_snapshot",
]

_VERSION = {"X-Svc-Version": "version"}

_may_make = requires_somewhere(Operation.CREATE, Operation.UPDATE, Operation.DELETE, narrowed=False)
"""Snapshots and forks are of everything, and stay until root removes them."""

_may_merge = replace(requires_identity, narrowed=False)


@operation("GET", "/versions/resolve", requires_identity, errors=(NotFound,), weight=Weight.SMALL)
def resolve_version(call: Call, query: ResolveQuery) -> ResolvedVersion:
    """Tells which version a name means now."""
    return ResolvedVersion(call.database.named_version(query.name).hex())


@operation(
    "POST",
    "/versions/snapshots",
    _may_make,
    older=("/version/snapshot",),
    status=201,
    errors=(AlreadyExists, Conflict, NotFound),
    weight=Weight.SMALL,
)
def create_snapshot(call: Call, body: NewSnapshot) -> Created[Snapshot]:
    """Makes a snapshot, or returns the one that names the same version already."""
    from svc_versions import forks, snapshots

    most = call.configuration.maximum_metadata
    if len(encode_json(body.metadata)) > most:
        raise PayloadTooLarge(f"The metadata may have at most {most} bytes.", field="metadata", limit=most)
    root, base_sequence = forks.state_of(call.database, fork=body.fork, version=body.version)
    made, is_new = snapshots.create_snapshot(
        call.database, body.name, body.metadata, root=root, base_sequence=base_sequence, actor=call.actor
    )
    return Created(made.as_answer(), is_new)


@operation("GET", "/versions/snapshots", requires_account, weight=Weight.DEAR)
def list_snapshots(call: Call) -> SnapshotList:
    """Lists snapshots, newest first."""
    from svc.plugin import run_blocking
    from svc_versions import snapshots

    found = run_blocking(snapshots.list_snapshots, call.database)
    return SnapshotList([one.as_answer() for one in found])


@operation("GET", "/version/snapshots", requires_account, weight=Weight.DEAR)
def list_snapshot_array(call: Call) -> list[Snapshot]:
    """Lists snapshots, newest first, as a bare array."""
    return list_snapshots(call).snapshots


@operation(
    "GET",
    "/versions/snapshots/{name:text}",
    requires_account,
    older=("/version/snapshot/{name:text}",),
    weight=Weight.SMALL,
)
def show_snapshot(call: Call, name: str) -> Snapshot:
    """Shows a snapshot."""
    from svc_versions import snapshots

    return snapshots.find_snapshot(call.database, name).as_answer()


@operation(
    "PATCH",
    "/versions/snapshots/{name:text}",
    requires_root,
    older=("/version/snapshot/{name:text}",),
    errors=(AlreadyExists,),
    weight=Weight.SMALL,
)
def rename_snapshot(call: Call, name: str, body: SnapshotName) -> Snapshot:
    """Gives a snapshot another name."""
    from svc_versions import snapshots

    return snapshots.rename_snapshot(call.database, name, body.name, actor=call.actor).as_answer()


@operation(
    "DELETE",
    "/versions/snapshots/{name:text}",
    requires_root,
    older=("/version/snapshot/{name:text}",),
    weight=Weight.SMALL,
)
def delete_snapshot(call: Call, name: str) -> DeletedSnapshot:
    """Deletes a snapshot; its version stays while the history holds it."""
    from svc_versions import snapshots

    return DeletedSnapshot(True, snapshots.delete_snapshot(call.database, name, actor=call.actor).name)


@operation(
    "POST",
    "/versions/restore",
    requires_root,
    older=("/version/restore",),
    errors=(NotFound, Conflict),
    weight=Weight.DEAR,
    headers=_VERSION,
)
def restore_snapshot(call: Call, body: SnapshotName) -> SnapshotRestore:
    """Makes a snapshot HEAD; what HEAD was stays in a snapshot of its own."""
    from svc_versions import restoring

    done = restoring.restore_snapshot(call.database, body.name, actor=call.actor)
    return SnapshotRestore(True, done.name, done.auto_snapshot, done.version.hex())


@operation(
    "POST",
    "/versions/file-restore/{path:path}",
    requires_root,
    older=("/version/file-restore/{path:path}",),
    errors=(NotFound, Conflict),
    weight=Weight.DEAR,
    headers=_VERSION,
)
def restore_path(call: Call, path: Path, body: PathRestoreBody) -> PathRestore:
    """Puts a file, link or directory back as a version has it; HEAD as it was stays in a snapshot."""
    from svc.plugin import parse_time
    from svc_versions import restoring

    if body.snapshot is None and body.version is None and body.at is None:
        raise InvalidInput("The body names a snapshot or a version.", field="snapshot")
    source = call.database.resolve_version(
        snapshot=body.snapshot,
        version=body.version,
        at=None if body.at is None else parse_time(body.at),
    )
    label = None if body.snapshot is None else f"snapshot {body.snapshot}"
    done = restoring.restore_path(call.database, path, source, actor=call.actor, label=label)
    return PathRestore(
        True,
        format_path(done.path),
        body.snapshot,
        source.hex(),
        done.auto_snapshot,
        done.entry.size,
        int(done.entry.kind),
        done.version.hex(),
    )


@operation(
    "POST",
    "/versions/forks",
    _may_make,
    older=("/version/fork",),
    status=201,
    errors=(AlreadyExists, NotFound),
    weight=Weight.DEAR,
)
def create_fork(call: Call, body: NewFork) -> Fork:
    """Makes a fork of a version; of HEAD without one."""
    from svc_versions import forks, permitting

    if body.base is not None and not call.identity.is_unrestricted_root:
        permitting.authorize_base(call, body.base)
    return forks.create_fork(call.database, body.name, base=body.base, actor=call.actor).as_answer()


@operation("GET", "/versions/forks", requires_account, weight=Weight.DEAR)
def list_forks(call: Call, query: ForkQuery = ForkQuery()) -> ForkList:
    """Lists the active forks, or what is left of abandoned ones, newest first."""
    from svc.plugin import run_blocking
    from svc_versions import forks

    if query.abandoned:
        return ForkList([one.as_answer() for one in run_blocking(forks.list_abandoned, call.database)])
    return ForkList([one.as_answer() for one in run_blocking(forks.list_forks, call.database)])


@operation("GET", "/version/forks", requires_account, weight=Weight.DEAR)
def list_fork_array(call: Call) -> list[Fork]:
    """Lists the active forks, newest first, as a bare array."""
    return list_forks(call).forks


@operation(
    "GET",
    "/versions/forks/{name:text}",
    requires_account,
    older=("/version/fork/{name:text}",),
    weight=Weight.SMALL,
)
def show_fork(call: Call, name: str) -> Fork:
    """Shows a fork."""
    from svc_versions import forks

    return forks.find_fork(call.database, name).as_answer()


@operation(
    "POST",
    "/versions/forks/{name:text}/promote",
    requires_root,
    older=("/version/fork/{name:text}/promote",),
    errors=(NotFound, Conflict),
    weight=Weight.DEAR,
    headers=_VERSION,
)
def promote_fork(
    call: Call, name: str, query: PromotionQuery = PromotionQuery(), body: PromotionBody = PromotionBody()
) -> Promotion:
    """Makes a fork's state HEAD; the fork stays."""
    from svc_versions import forks

    force = query.force or body.force
    done = forks.promote_fork(call.database, name, force=force, actor=call.actor)
    return Promotion(True, done.fork.name, done.version.hex(), done.previous.hex())


@operation(
    "DELETE",
    "/versions/forks/{name:text}",
    requires_root,
    older=("/version/fork/{name:text}",),
    weight=Weight.SMALL,
)
def abandon_fork(call: Call, name: str) -> AbandonedFork:
    """Abandons a fork; its name becomes free, its state stays until it is collected."""
    from svc_versions import forks

    gone = forks.abandon_fork(call.database, name, actor=call.actor)
    return AbandonedFork(True, gone.name, gone.root.hex())


@operation(
    "POST",
    "/versions/merge",
    _may_merge,
    errors=(NotFound, Conflict),
    weight=Weight.DEAR,
    headers=_VERSION,
)
def merge_versions(call: Call, body: MergeBody) -> Merge:
    """Merges a fork or a snapshot into HEAD, which is root's, or into a fork.

    Where both changed a path and no strategy decides, nothing is merged, and the error lists the conflicts.
    """
    from svc_versions import merging, permitting

    if body.into == "HEAD":
        call.authorize_root()
    is_root = call.identity.is_unrestricted_root
    settings = call.configuration
    done = merging.merge_versions(
        call.database,
        body.source,
        body.into,
        body.strategy,
        message=body.message,
        actor=call.actor,
        permit=None if is_root else permitting.MergePermit(call),
        shows=None if is_root else lambda path: call.may(Operation.READ, path),
        dry_run=body.dry_run,
        limits=merging.MergeLimits(
            settings.conflicts_listed, settings.merge_nodes if call.is_served else None
        ),
        resolutions=body.resolutions,
    )
    return Merge(
        not body.dry_run,
        body.dry_run,
        body.source,
        body.into,
        done.version.hex(),
        None if done.base is None else done.base.hex(),
        done.counts,
        done.fast_forward,
        done.conflicts,
    )


@operation("GET", "/system/lifecycle", requires_identity, weight=Weight.SMALL)
def show_lifecycle(call: Call) -> Lifecycle:
    """Shows whether snapshots are made, and how long they are kept."""
    from svc_versions import lifecycle

    return lifecycle.lifecycle_of(call.database.system())


@operation("PUT", "/system/lifecycle", requires_root, weight=Weight.SMALL)
def change_lifecycle(call: Call, body: LifecycleChange) -> Lifecycle:
    """Changes what the body names of the lifecycle settings."""
    from svc_versions import lifecycle

    return lifecycle.change_lifecycle(call.database, body, actor=call.actor)
