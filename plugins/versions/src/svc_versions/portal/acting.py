"""What the forms of the pages do, each by one operation; messages take it back where that can be."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from svc_portal.api import Act, Answer, Message, Redirect, Undo

from svc.errors import AuthRequired, InvalidInput, SvcError
from svc.plugin import encode_json
from svc_versions.models import (
    MergeBody,
    NewFork,
    NewSnapshot,
    PromotionBody,
    ResolveQuery,
    SnapshotName,
)
from svc_versions.operations import (
    abandon_fork,
    create_fork,
    create_snapshot,
    delete_snapshot,
    merge_versions,
    promote_fork,
    rename_snapshot,
    resolve_version,
    restore_snapshot,
    show_snapshot,
)
from svc_versions.portal.conflicts import resolutions_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["FORK_ACTS", "SNAPSHOT_ACTS", "act_on_merge", "merge_body"]

_LONGEST = 150


def act_on_merge(request: PortalRequest) -> Answer:
    """Merges, and says what came of it; what takes it back is root's, as the merge into HEAD is."""
    body = msgspec.structs.replace(
        merge_body(request.form.get, dry_run=False), resolutions=resolutions_of(request)
    )
    into_head = body.into == "HEAD"
    back = request.url("merge", {"from": body.source, "into": body.into})
    try:
        before = request.call(resolve_version, ResolveQuery("HEAD")).version if into_head else ""
        done = request.call(merge_versions, body)
    except AuthRequired:
        raise
    except SvcError as error:
        return Redirect(back, Message(error.message, is_error=True))
    undo = _undo_to(request, before, f"before merging {body.source}") if into_head else None
    counts = done.changes
    text = (
        f"Merged {body.source} into {body.into}: {counts.added:,} added, {counts.modified:,} modified, "
        f"{counts.deleted:,} deleted."
    )
    return Redirect(request.url("versions" if into_head else "forks"), Message(text, undo))


def merge_body(field: Callable[[str], str], *, dry_run: bool) -> MergeBody:
    """Returns what a form or a URL asks to be merged."""
    values = {
        "from": field("from"),
        "into": field("into") or "HEAD",
        "strategy": field("strategy") or "fail",
        "message": field("message") or None,
        "dry_run": dry_run,
    }
    try:
        return msgspec.convert(values, MergeBody)
    except msgspec.ValidationError:
        raise InvalidInput("The strategy is fail, ours or theirs.", field="strategy") from None


def _said(request: PortalRequest, page: str, text: str, undo: Undo | None = None) -> Redirect:
    return Redirect(request.url(page), Message(text, undo))


def _undo(request: PortalRequest, page: str, **fields: str) -> Undo | None:
    """Nothing for those whose form would be refused."""
    return Undo(request.url(page), fields) if request.identity.is_unrestricted_root else None


def _undo_to(request: PortalRequest, version: str, what: str) -> Undo | None:
    """The version gets a name by it, which no other has."""
    name = f"{what[:_LONGEST]} ({version[:10]})"
    return _undo(request, "versions", action="go_back", version=version, name=name)


# Snapshots -------------------------------------------------------------------------------------------------


def _create_snapshot(request: PortalRequest) -> Answer:
    form = request.form
    try:
        metadata = msgspec.json.decode(form.get("metadata") or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        raise InvalidInput("The metadata is no JSON object.", field="metadata") from None
    body = NewSnapshot(
        form.require("name"), metadata, fork=form.get("fork") or None, version=form.get("version") or None
    )
    made = request.call(create_snapshot, body)
    if not made.created:
        return _said(request, "versions", f"The snapshot {made.value.name} names this version already.")
    undo = _undo(request, "versions", action="delete", name=made.value.name)
    return _said(request, "versions", f"Made the snapshot {made.value.name}.", undo)


def _rename_snapshot(request: PortalRequest) -> Answer:
    name = request.form.require("name")
    renamed = request.call(rename_snapshot, name, SnapshotName(request.form.require("new_name")))
    undo = _undo(request, "versions", action="rename", name=renamed.name, new_name=name)
    return _said(request, "versions", f"Renamed {name} to {renamed.name}.", undo)


def _delete_snapshot(request: PortalRequest) -> Answer:
    name = request.form.require("name")
    gone = request.call(show_snapshot, name)
    request.call(delete_snapshot, name)
    metadata = encode_json(gone.metadata).decode()
    fields = {"action": "create", "name": name, "version": gone.root_hash, "metadata": metadata}
    return _said(request, "versions", f"Deleted the snapshot {name}.", _undo(request, "versions", **fields))


def _restore_snapshot(request: PortalRequest) -> Answer:
    done = request.call(restore_snapshot, SnapshotName(request.form.require("name")))
    if done.auto_snapshot is None:
        return _said(request, "versions", f"All files are as in {done.name} already.")
    undo = _undo(request, "versions", action="restore", name=done.auto_snapshot)
    text = f"Restored {done.name}. What was there is in the snapshot {done.auto_snapshot}."
    return _said(request, "versions", text, undo)


def _go_back(request: PortalRequest) -> Answer:
    """Restores a version that has no name: it gets one."""
    form = request.form
    body = NewSnapshot(form.require("name"), version=form.require("version"))
    named = request.call(create_snapshot, body).value
    done = request.call(restore_snapshot, SnapshotName(named.name))
    return _said(request, "versions", f"All files are again as in the snapshot {done.name}.")


SNAPSHOT_ACTS: dict[str, Act] = {
    "create": _create_snapshot,
    "rename": _rename_snapshot,
    "delete": _delete_snapshot,
    "restore": _restore_snapshot,
    "go_back": _go_back,
}


# Forks -----------------------------------------------------------------------------------------------------


def _create_fork(request: PortalRequest) -> Answer:
    body = NewFork(request.form.require("name"), request.form.get("base") or None)
    made = request.call(create_fork, body)
    undo = _undo(request, "forks", action="abandon", name=made.name)
    return _said(request, "forks", f"Made the fork {made.name}.", undo)


def _abandon_fork(request: PortalRequest) -> Answer:
    gone = request.call(abandon_fork, request.form.require("name"))
    return _said(request, "forks", f"Abandoned the fork {gone.name}. Its last version is {gone.root_hash}.")


def _promote_fork(request: PortalRequest, *, force: bool) -> Answer:
    done = request.call(promote_fork, request.form.require("name"), body=PromotionBody(force))
    undo = _undo_to(request, done.previous_version, f"before promoting {done.name}")
    return _said(request, "forks", f"All files are now as in the fork {done.name}.", undo)


FORK_ACTS: dict[str, Act] = {
    "create": _create_fork,
    "abandon": _abandon_fork,
    "promote": functools.partial(_promote_fork, force=False),
    "promote_anyway": functools.partial(_promote_fork, force=True),
}
