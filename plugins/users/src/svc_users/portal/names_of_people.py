"""What the pages share: names of users and groups in the place of ids, and tags as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import NotFound
from svc_users.models import UserQuery
from svc_users.names import user_id_of
from svc_users.operations import list_users, show_user

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["find_user_id", "group_name", "tags_of", "user_name"]


def find_user_id(request: PortalRequest, name_or_id: str) -> str:
    """Returns the id of a user.

    Raises:
        NotFound: there is no user of this name.
    """
    user_id = user_id_of(name_or_id)
    if user_id is not None:
        return user_id
    found = request.call(list_users, UserQuery(username=name_or_id)).users
    if not found:
        raise NotFound(f"There is no user {name_or_id[:200]}.")
    return found[0].user_id


def user_name(request: PortalRequest, user_id: str) -> str:
    """Returns the name of a user; the id where the database does not keep the user."""
    try:
        return request.call(show_user, user_id).username
    except NotFound:
        return user_id


def group_name(request: PortalRequest, group: str) -> tuple[str, str | None]:
    """Returns how a group is called, and where it is shown; a user's own group is the user."""
    user_id = _own(group)
    if user_id is not None:
        return user_name(request, user_id), request.url("users.one", user=user_id)
    return group, request.url("users.group", name=group)


def _own(group: str) -> str | None:
    kind, colon, user_id = group.partition(":")
    return user_id_of(user_id) if colon and kind == "user" else None


def tags_of(text: str) -> list[str]:
    """Returns the tags of a field, which blanks or commas separate."""
    return text.replace(",", " ").split()
