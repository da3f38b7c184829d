"""Who may do what to a path, and why: the grants on it and above it, and what comes out for one user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Act, Answer, EntryAction, Message, PortalEntry, RootPage, Shown, Undo

from svc.errors import AuthRequired, InvalidInput, SvcError
from svc.plugin import Path, format_path
from svc_users.models import AccessQuery, Grant, GrantQuery, NewGrant
from svc_users.names import own_group
from svc_users.operations import create_grant, delete_grant, explain_access, list_grants
from svc_users.portal.names_of_people import find_user_id, group_name

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["AccessAction", "AccessPage"]

FLAGS = {
    "c": "create",
    "r": "read",
    "u": "update",
    "d": "delete",
    "l": "list",
    "i": "invoke",
    "f": "functions",
    "y": "configure",
}
_MOST_GRANTS = 200
_DEPTH = 32


class AccessAction(EntryAction):
    """A link to the page of an entry, for root."""

    name: ClassVar[str] = "users.access"
    title: ClassVar[str] = "Who may see this"
    place: ClassVar[int] = 60

    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """The page of the path."""
        if not request.identity.is_unrestricted_root:
            return None
        return request.url("users.access", path=entry.path)


class AccessPage(RootPage):
    """The rights at a path."""

    name: ClassVar[str] = "users.access"
    path: ClassVar[str] = "access/{path:path}"
    title: ClassVar[str] = "Who may see this"
    follows: ClassVar[str | None] = "users"

    def show(self, request: PortalRequest) -> Answer:
        """The grants from the path up to the root, and what a user may do, if one is named."""
        path: Path = request.fields["path"]
        user = request.query.get("user").strip()
        values: dict[str, Any] = {
            "path": format_path(path),
            "entry_url": request.entry_url(path),
            "levels": [_level(request, path[:length]) for length in _lengths(path)],
            "flags": FLAGS,
            "user": user,
            "access": None,
            "error": None,
            "see_url": None,
            "here": request.url("users.access", path=path),
        }
        if user:
            try:
                access = request.call(explain_access, AccessQuery(format_path(path), user))
                values["access"] = access
                if not access.is_root:
                    values["see_url"] = request.url("users.see", user=access.user_id, path=path)
            except AuthRequired:
                raise
            except SvcError as error:
                values["error"] = error.message
        return Shown("access.html", values, title=f"Who may see {format_path(path)}")

    def acts(self) -> Mapping[str, Act]:
        """Grants the path, or takes a grant back."""
        return {"grant": _grant, "revoke": _revoke}


def _lengths(path: Path) -> list[int]:
    """Of the path and those above it; of a deep one those next to it, and the root."""
    lengths = list(range(len(path), -1, -1))
    return lengths if len(lengths) <= _DEPTH else [*lengths[: _DEPTH - 1], 0]


def _level(request: PortalRequest, path: Path) -> dict[str, Any]:
    page = request.call(list_grants, GrantQuery(path=format_path(path), limit=_MOST_GRANTS))
    rows = []
    for one in page.grants:
        name, url = group_name(request, one.group)
        rows.append({"grant": one, "name": name, "url": url, "is_user": name != one.group})
    return {
        "path": format_path(path),
        "url": request.url("users.access", path=path),
        "rows": rows,
        "has_more": page.has_more,
    }


def _grant(request: PortalRequest) -> Message:
    form = request.form
    allow, deny = _flags(form.all("allow")), _flags(form.all("deny"))
    if set(allow + deny) == {"-"}:
        raise InvalidInput("Nothing was chosen to be allowed or denied.", field="allow")
    user = form.get("user").strip()
    group = own_group(find_user_id(request, user)) if user else form.require("group")
    path = format_path(request.fields["path"])
    made = request.call(create_grant, NewGrant(path, group, allow, deny, form.get("pattern") or None))
    name, _ = group_name(request, made.value.group)
    done = "Granted to" if made.created else "Replaced the grant of"
    undo = {"action": "revoke", "grant": made.value.grant_id}
    return Message(f"{done} {name}.", Undo(request.here, undo))


def _revoke(request: PortalRequest) -> Message:
    gone = request.call(delete_grant, request.form.require("grant"))
    name, _ = group_name(request, gone.group)
    is_of_here = gone.path == format_path(request.fields["path"])
    undo = Undo(request.here, _form_of(gone)) if is_of_here else None
    return Message(f"Took the grant of {name} back.", undo)


def _form_of(grant: Grant) -> dict[str, str]:
    """The form that grants the same again."""
    return {
        "action": "grant",
        "group": grant.group,
        "allow": grant.allow.replace("-", ""),
        "deny": grant.deny.replace("-", ""),
        "pattern": grant.path_pattern or "",
    }


def _flags(said: list[str]) -> str:
    """Eight letters, each in its place; what a form has as one text may hold several."""
    letters = set("".join(said))
    if not letters <= set(FLAGS):
        raise InvalidInput("There is no such right.", field="allow")
    return "".join(letter if letter in letters else "-" for letter in FLAGS)
