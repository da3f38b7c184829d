"""The lists of snapshots and forks, and a page for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from msgspec import UNSET
from svc_portal.api import Act, Answer, PortalPage, Shown

from svc.plugin import Operation
from svc_versions.models import Fork, Snapshot
from svc_versions.operations import list_forks, list_snapshots, show_fork, show_snapshot
from svc_versions.portal.acting import FORK_ACTS, SNAPSHOT_ACTS

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["ForkPage", "ForksPage", "SnapshotPage", "SnapshotsPage"]

ROWS = 50

Named = TypeVar("Named", Snapshot, Fork)


class _VersionsPage(PortalPage):
    def is_for(self, request: PortalRequest) -> bool:
        """For those who have an account; the holder of a link is told of no names."""
        return request.identity.user_id is not None


class SnapshotsPage(_VersionsPage):
    """All snapshots, newest first."""

    name: ClassVar[str] = "versions"
    path: ClassVar[str] = "versions"
    title: ClassVar[str] = "Versions"
    place: ClassVar[int | None] = 21

    def show(self, request: PortalRequest) -> Answer:
        """By pages, with a form that makes one."""
        return _list_page(
            request, "snapshots.html", self.name, request.call(list_snapshots).snapshots, "Snapshots"
        )

    def acts(self) -> Mapping[str, Act]:
        """Makes one."""
        return SNAPSHOT_ACTS


class ForksPage(_VersionsPage):
    """All active forks, newest first."""

    name: ClassVar[str] = "forks"
    path: ClassVar[str] = "versions/forks"
    title: ClassVar[str] = "Forks"
    follows: ClassVar[str | None] = "versions"

    def show(self, request: PortalRequest) -> Answer:
        """By pages, with a form that makes one."""
        return _list_page(request, "forks.html", self.name, request.call(list_forks).forks, "Forks")

    def acts(self) -> Mapping[str, Act]:
        """Makes one."""
        return FORK_ACTS


class SnapshotPage(_VersionsPage):
    """A snapshot, and what can be done with it."""

    name: ClassVar[str] = "snapshot"
    path: ClassVar[str] = "versions/snapshot"
    title: ClassVar[str] = "Snapshot"
    follows: ClassVar[str | None] = "versions"
    refused_to: ClassVar[str | None] = "versions"

    def show(self, request: PortalRequest) -> Answer:
        """What is known of it, with forms for root; one asks before it restores."""
        found = request.call(show_snapshot, request.query.require("name"))
        return _named_page(request, "snapshot.html", self.name, found, f"Snapshot {found.name}")

    def acts(self) -> Mapping[str, Act]:
        """Renames, deletes, restores."""
        return SNAPSHOT_ACTS


class ForkPage(_VersionsPage):
    """A fork, and what can be done with it."""

    name: ClassVar[str] = "fork"
    path: ClassVar[str] = "versions/fork"
    title: ClassVar[str] = "Fork"
    follows: ClassVar[str | None] = "versions"
    refused_to: ClassVar[str | None] = "forks"

    def show(self, request: PortalRequest) -> Answer:
        """What is known of it, with forms; one asks before it is abandoned."""
        found = request.call(show_fork, request.query.require("name"))
        return _named_page(request, "fork.html", self.name, found, f"Fork {found.name}")

    def acts(self) -> Mapping[str, Act]:
        """Promotes, abandons."""
        return FORK_ACTS


def _list_page(request: PortalRequest, template: str, page: str, found: Sequence[Named], title: str) -> Shown:
    wanted, after = request.query.get("name").casefold(), request.query.get("after")
    matching = [one for one in found if wanted in one.name.casefold()] if wanted else list(found)
    matching.sort(key=_place)
    if after:
        at = _place_of(after)
        matching = [one for one in matching if _place(one) > at]
    rows = matching[:ROWS]
    more = len(matching) > ROWS
    following = {"name": request.query.get("name"), "after": _cursor(rows[-1]) if more else ""}
    one_page = "snapshot" if page == "versions" else "fork"
    values = {
        "rows": [(one, _who(request, one), request.url(one_page, {"name": one.name})) for one in rows],
        "total": len(found),
        "wanted": request.query.get("name"),
        "after": after,
        "here": request.url(page),
        "snapshots_url": request.url("versions"),
        "forks_url": request.url("forks"),
        "next_url": request.url(page, following) if more else None,
        "may_make": request.context.may_somewhere(Operation.CREATE, Operation.UPDATE, Operation.DELETE),
    }
    return Shown(template, values, title=title)


def _place(one: Snapshot | Fork) -> tuple[int, str]:
    """Newest first; those of one millisecond by name."""
    return -(one.created_at or 0), one.name


def _cursor(one: Snapshot | Fork) -> str:
    return f"{one.created_at or 0}.{one.name}"


def _place_of(cursor: str) -> tuple[int, str]:
    time, _, name = cursor.partition(".")
    return (-int(time) if time.isascii() and time.isdigit() and len(time) < 20 else 0), name


def _who(request: PortalRequest, one: Snapshot | Fork) -> str:
    return request.user_name(one.created_by) if isinstance(one.created_by, str) else ""


def _named_page(
    request: PortalRequest, template: str, page: str, found: Snapshot | Fork, title: str
) -> Shown:
    name = found.name
    reference = f"snapshots/{name}" if isinstance(found, Snapshot) else f"forks/{name}"
    base = getattr(found, "base", UNSET)
    values = {
        "found": found,
        "base": base if isinstance(base, str) else None,
        "who": _who(request, found),
        "here": request.url(page, {"name": name}),
        "confirm_url": request.url(page, {"name": name, "do": "confirm"}),
        "confirms": request.query.get("do") == "confirm",
        "is_root": request.identity.is_unrestricted_root,
        "merge_url": request.url("merge"),
        "look_url": request.url_if("past", {"version": found.root_hash}, path=()),
        "compare_url": request.url_if("compare", {"from": "HEAD", "to": reference}, path=()),
        "changes_url": request.url_if("compare", {"from": base, "to": reference}, path=())
        if isinstance(base, str)
        else None,
        "log_url": request.url_if("log", {"fork": name}),
    }
    return Shown(template, values, title=title)
