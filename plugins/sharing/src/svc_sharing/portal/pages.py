"""What is shared with the reader, the shares and links of a path, and all links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Act, Answer, EntryAction, Message, PortalEntry, PortalPage, RootPage, Shown

from svc.errors import InvalidInput
from svc.plugin import Path, format_path, parse_path
from svc_sharing.models import (
    LinkQuery,
    NewLink,
    NewShareLink,
    NewShares,
    OldShares,
    PageQuery,
    ShareLink,
    ShareQuery,
)
from svc_sharing.operations import (
    create_link,
    end_shares,
    list_links,
    list_shared_with_me,
    list_shares,
    revoke_link,
    share_paths,
)

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["LinksPage", "ShareAction", "SharedPage", "SharingPage"]

ROWS = 100
_RIGHTS = {
    "-r--l---": "read and list",
    "cr--l---": "read, list and add",
    "crudl---": "read, list, add, change and delete",
}
_READS = "-r--l---"
_LONGEST_DAYS = 3_650


class ShareAction(EntryAction):
    """A link to the page of an entry, for root."""

    name: ClassVar[str] = "sharing.share"
    title: ClassVar[str] = "Share"
    place: ClassVar[int] = 55

    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """The page of the path; of the root there is none."""
        if not entry.path or not request.identity.is_unrestricted_root:
            return None
        return request.url("sharing.path", path=entry.path)


class SharedPage(PortalPage):
    """The paths that are open to the reader."""

    name: ClassVar[str] = "sharing.with-me"
    path: ClassVar[str] = "shared"
    title: ClassVar[str] = "Shared with me"
    place: ClassVar[int | None] = 5

    def is_for(self, request: PortalRequest) -> bool:
        """All but root, to whom everything is open."""
        return not request.identity.is_unrestricted_root

    def show(self, request: PortalRequest) -> Answer:
        """A part of the list."""
        page = request.call(list_shared_with_me, PageQuery(after=request.query.get("after") or None))
        values = {
            "rows": [(one, request.entry_url(parse_path(one.path))) for one in page.paths],
            "next_url": request.url("sharing.with-me", {"after": page.next_cursor})
            if page.has_more
            else None,
        }
        return Shown("shared.html", values)


class LinksPage(RootPage):
    """All links that work."""

    name: ClassVar[str] = "sharing.links"
    path: ClassVar[str] = "links"
    title: ClassVar[str] = "Links"
    place: ClassVar[int | None] = 52

    def show(self, request: PortalRequest) -> Answer:
        """A part of the list, oldest first."""
        page = request.call(list_links, LinkQuery(after=request.query.get("after") or None))
        next_url = request.url("sharing.links", {"after": page.next_cursor}) if page.has_more else None
        values = {"rows": [_link(request, one) for one in page.links], "next_url": next_url}
        return Shown("links.html", {**values, "here": request.url("sharing.links")})

    def acts(self) -> Mapping[str, Act]:
        """Ends one."""
        return {"revoke": _revoke}


class SharingPage(RootPage):
    """The shares and links of a path."""

    name: ClassVar[str] = "sharing.path"
    path: ClassVar[str] = "share/{path:path}"
    title: ClassVar[str] = "Share"
    follows: ClassVar[str | None] = "sharing.links"

    def show(self, request: PortalRequest) -> Answer:
        """Both, with forms to add one."""
        return _page(request, None)

    def acts(self) -> Mapping[str, Act]:
        """Makes a link, which is shown once, or a share; ends them."""
        return {
            "link": lambda request: _page(request, _make_link(request)),
            "revoke": _revoke,
            "share": _share,
            "end": _end,
        }


def _page(request: PortalRequest, made: NewShareLink | None) -> Shown:
    path: Path = request.fields["path"]
    text = format_path(path)
    links = request.call(list_links, LinkQuery(path=text, limit=ROWS))
    shares = request.call(list_shares, ShareQuery(path=text, limit=ROWS))
    values = {
        "path": text,
        "entry_url": request.entry_url(path),
        "made": made,
        "links": [_link(request, one) for one in links.links],
        "shares": shares.shares,
        "has_more": links.has_more or shares.has_more,
        "rights": _RIGHTS,
        "days": request.plugin.configuration.link_days,
        "here": request.url("sharing.path", path=path),
        "links_url": request.url("sharing.links"),
    }
    return Shown("sharing.html", values, title=f"Share {text}")


def _link(request: PortalRequest, link: ShareLink) -> dict[str, Any]:
    paths = [(path, request.url("sharing.path", path=parse_path(path))) for path in link.paths]
    return {"link": link, "paths": paths}


def _make_link(request: PortalRequest) -> NewShareLink:
    form = request.form
    body = NewLink(
        paths=[format_path(request.fields["path"])],
        permissions=form.get("permissions") or _READS,
        expires_in_days=form.number("days", _LONGEST_DAYS, f"A link is good for 1 to {_LONGEST_DAYS} days."),
        # Where the settings have none, a link leads to where its maker is.
        base_url=None if request.plugin.configuration.base_url else request.http.prefix,
    )
    return request.call(create_link, body)


def _revoke(request: PortalRequest) -> Message:
    request.call(revoke_link, request.form.require("link"))
    return Message("Ended the link, for everyone who has it.")


def _share(request: PortalRequest) -> Message:
    form = request.form
    users, groups = form.get("users").split(), form.get("groups").split()
    if not users and not groups:
        raise InvalidInput("Say with which users or groups it is to be shared.", field="users")
    path = format_path(request.fields["path"])
    body = NewShares(paths=[path], users=users, groups=groups, permissions=form.get("permissions") or _READS)
    request.call(share_paths, body)
    return Message(f"Shared {path} with {', '.join([*users, *groups])}.")


def _end(request: PortalRequest) -> Message:
    path = format_path(request.fields["path"])
    body = OldShares(paths=[path], users=request.form.all("users"), groups=request.form.all("groups"))
    removed = request.call(end_shares, body).removed
    return Message("Ended the share." if removed else "There is no such share any more.")
