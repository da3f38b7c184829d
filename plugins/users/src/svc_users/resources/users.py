"""``/system/users``: make, list, show, change, deactivate."""

from __future__ import annotations

import falcon
import msgspec

from svc.plugin import context_of, query_text, read_json, requires_root, send_json
from svc_users.answers import page_answer, user_answer
from svc_users.requests import page_limit, query_choice, settings_of
from svc_users.users import UserChange, UserFilter, change_user, create_user, list_users, require_user

__all__ = ["UserBody", "UserResource", "UsersResource"]


class UserBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a user."""

    username: str
    email: str | None = None
    tags: list[str] = []
    is_active: bool = True


class UsersResource:
    """All users."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes one: 201."""
        body = read_json(req, UserBody, settings_of(req).maximum_json)
        context = context_of(req)
        user = create_user(
            context.database,
            body.username,
            email=body.email,
            tags=body.tags,
            is_active=body.is_active,
            actor=context.actor,
        )
        send_json(resp, user_answer(user, context.database.system()), 201)

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists them in pages."""
        wanted = UserFilter(
            username=query_text(req, "username"),
            tag=query_text(req, "tag"),
            is_active=query_choice(req, "is_active"),
        )
        page = list_users(
            context_of(req).database.system(),
            wanted,
            limit=page_limit(req),
            after=query_text(req, "after"),
            scanned=settings_of(req).scanned,
        )
        send_json(resp, page_answer("users", page, user_answer))


class UserResource:
    """One user."""

    @requires_root
    def on_get(self, req: falcon.Request, resp: falcon.Response, user_id: str) -> None:
        """Shows the user, with the names of all groups."""
        system = context_of(req).database.system()
        send_json(resp, user_answer(require_user(system, user_id), system))

    @requires_root
    def on_patch(self, req: falcon.Request, resp: falcon.Response, user_id: str) -> None:
        """Changes what the body names."""
        change = read_json(req, UserChange, settings_of(req).maximum_json)
        context = context_of(req)
        user = change_user(context.database, user_id, change, actor=context.actor)
        send_json(resp, user_answer(user, context.database.system()))

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response, user_id: str) -> None:
        """Deactivates the user, whose tokens and keys stop with the next request."""
        context = context_of(req)
        user = change_user(context.database, user_id, UserChange(is_active=False), actor=context.actor)
        send_json(resp, {"deactivated": True, "user_id": user.user_id, "username": user.username})
