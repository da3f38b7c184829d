"""How this node sees the cluster, and what nodes wrote without knowing of each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from svc_portal.api import Act, Answer, Message, RootPage, Shown, StateCard

from svc.errors import InvalidInput
from svc.plugin import parse_path
from svc_sync.models import ConflictQuery, ResolveBody, ShownConflict, VersionShown
from svc_sync.operations import list_conflicts, resolve_conflict, sync_status, trigger_sync

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["ClusterPage", "PeersCard"]

_ROWS = 50


class ClusterPage(RootPage):
    """Peers and conflicts."""

    name: ClassVar[str] = "cluster"
    path: ClassVar[str] = "cluster"
    title: ClassVar[str] = "Cluster"
    place: ClassVar[int | None] = 85

    def show(self, request: PortalRequest) -> Answer:
        """The peers, and a part of the conflicts."""
        after = request.query.get("after") or None
        page = request.call(list_conflicts, ConflictQuery(limit=_ROWS, after=after))
        values = {
            "status": request.call(sync_status),
            "conflicts": [_row(request, one) for one in page.conflicts],
            "next_url": request.url("cluster", {"after": page.next_cursor}) if page.has_more else None,
            "here": request.url("cluster"),
        }
        return Shown("cluster.html", values)

    def acts(self) -> Mapping[str, Act]:
        """Exchanges with all peers, or lets one version of a path stand."""
        return {"trigger": _trigger, "pick": _pick}


class PeersCard(StateCard):
    """How far each peer is."""

    name: ClassVar[str] = "cluster"
    title: ClassVar[str] = "Cluster"
    template: ClassVar[str] = "card.html"
    place: ClassVar[int] = 50

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """Nothing for others than root."""
        if not request.identity.is_unrestricted_root:
            return None
        conflicts = request.call(list_conflicts, ConflictQuery(limit=_ROWS))
        return {
            "status": request.call(sync_status),
            "conflicts": len(conflicts.conflicts),
            "has_more": conflicts.has_more,
            "url": request.url("cluster"),
        }


def _row(request: PortalRequest, conflict: ShownConflict) -> dict[str, Any]:
    address = f"/sync/conflicts{quote(conflict.path)}?version={quote(conflict.loser.version)}"
    return {
        "path": conflict.path,
        "kind": conflict.kind,
        "detected_ms": conflict.detected_at,
        "sides": [
            ("What stands there", "winner", conflict.winner, request.entry_url(parse_path(conflict.path))),
            ("What has lost", "loser", conflict.loser, address if _has_content(conflict.loser) else None),
        ],
        "version": conflict.loser.version,
    }


def _has_content(side: VersionShown) -> bool:
    return side.kind == "file"


def _trigger(request: PortalRequest) -> Message:
    results = request.call(trigger_sync).results
    failed = [one for one in results if not one.ok]
    if failed:
        said = "; ".join(f"node {one.node_id}: {one.error or 'failed'}" for one in failed)
        return Message(f"Not all nodes could be reached. {said}", is_error=True)
    pulled = sum(one.pulled for one in results)
    return Message(f"Exchanged with {len(results)} nodes; {pulled} paths have changed here.")


def _pick(request: PortalRequest) -> Message:
    pick = request.form.get("pick")
    if pick not in ("winner", "loser"):
        raise InvalidInput("Say which of the two is to stand.", field="pick")
    path = parse_path(request.form.require("path"))
    body = ResolveBody(
        pick="loser" if pick == "loser" else "winner", version=request.form.get("version") or None
    )
    done = request.call(resolve_conflict, path, body)
    return Message(f"The conflict at {done.path} is resolved, on every node.")
