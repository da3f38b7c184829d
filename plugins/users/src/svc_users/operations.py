"""The operations on users, groups, grants and their explanation. All of them are root's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from svc.errors import AlreadyExists, Conflict, NotFound
from svc.plugin import Created, Weight, operation, parse_path, requires_root
from svc_users.models import (
    Access,
    AccessQuery,
    DeactivatedUser,
    DeletedGrant,
    DeletedGroup,
    Grant,
    GrantPage,
    GrantQuery,
    Group,
    GroupChange,
    GroupPage,
    NewGrant,
    NewGroup,
    NewUser,
    PageQuery,
    SeeingQuery,
    SeenDirectory,
    User,
    UserChange,
    UserPage,
    UserQuery,
)

if TYPE_CHECKING:
    from svc.plugin import Call
    from svc_cli import Service

__all__ = [
    "change_group",
    "change_user",
    "create_grant",
    "create_group",
    "create_user",
    "deactivate_user",
    "delete_grant",
    "delete_group",
    "explain_access",
    "id_of_user",
    "list_as_user",
    "list_grants",
    "list_groups",
    "list_users",
    "named_user",
    "show_grant",
    "show_group",
    "show_user",
]


@operation("POST", "/system/users", requires_root, status=201, errors=(AlreadyExists,), weight=Weight.SMALL)
def create_user(call: Call, body: NewUser) -> User:
    """Makes a user."""
    from svc_users import answers, users

    made = users.create_user(
        call.database,
        body.username,
        email=body.email,
        tags=body.tags,
        is_active=body.is_active,
        actor=call.actor,
    )
    return answers.user_answer(made, call.database.system())


@operation("GET", "/system/users", requires_root, weight=Weight.DEAR)
def list_users(call: Call, query: UserQuery = UserQuery()) -> UserPage:
    """Lists users, in the order of their ids."""
    from svc_users import answers, users

    page = users.list_users(call.database.system(), query, scanned=call.configuration.scanned)
    return answers.page_answer(UserPage, page, answers.user_answer)


@operation("GET", "/system/users/{user_id}", requires_root, weight=Weight.SMALL)
def show_user(call: Call, user_id: str) -> User:
    """Shows a user with the names of all its groups."""
    from svc_users import answers, users

    system = call.database.system()
    return answers.user_answer(users.require_user(system, user_id), system)


@operation(
    "PATCH", "/system/users/{user_id}", requires_root, errors=(AlreadyExists, Conflict), weight=Weight.SMALL
)
def change_user(call: Call, user_id: str, body: UserChange) -> User:
    """Changes what the body names of a user."""
    from svc_users import answers, users

    changed = users.change_user(call.database, user_id, body, actor=call.actor)
    return answers.user_answer(changed, call.database.system())


@operation("DELETE", "/system/users/{user_id}", requires_root, errors=(Conflict,), weight=Weight.DEAR)
def deactivate_user(call: Call, user_id: str) -> DeactivatedUser:
    """Deactivates a user, whose tokens and keys stop with the next request."""
    from svc_users import users

    user = users.change_user(call.database, user_id, UserChange(is_active=False), actor=call.actor)
    return DeactivatedUser(True, user.user_id, user.username)


@operation("POST", "/system/groups", requires_root, status=201, errors=(AlreadyExists,), weight=Weight.DEAR)
def create_group(call: Call, body: NewGroup) -> Group:
    """Makes a group."""
    from svc_users import answers, groups

    made = groups.create_group(
        call.database,
        body.name,
        members=body.members,
        tags=body.tags,
        actor=call.actor,
        most_members=call.configuration.maximum_members,
    )
    return answers.group_answer(call.database.system(), made, PageQuery())


@operation("GET", "/system/groups", requires_root, weight=Weight.DEAR)
def list_groups(call: Call, query: PageQuery = PageQuery()) -> GroupPage:
    """Lists groups, each with its first members; users' own groups are not among them."""
    from svc_users import answers, groups

    system = call.database.system()
    page = groups.list_groups(system, limit=query.limit, after=query.after)
    return answers.page_answer(GroupPage, page, partial(answers.group_answer, system))


@operation("GET", "/system/groups/{name}", requires_root, weight=Weight.DEAR)
def show_group(call: Call, name: str, query: PageQuery = PageQuery()) -> Group:
    """Shows a group with a part of its members."""
    from svc_users import answers, groups
    from svc_users.lookup import user_of_own_group

    system = call.database.system()
    user = user_of_own_group(system, name)
    if user is not None:
        return answers.own_group_answer(user)
    return answers.group_answer(system, groups.require_named_group(system, name), query)


@operation("PATCH", "/system/groups/{name}", requires_root, weight=Weight.DEAR)
def change_group(call: Call, name: str, body: GroupChange) -> Group:
    """Changes what the body names of a group."""
    from svc_users import answers, groups

    most = call.configuration.maximum_members
    changed = groups.change_group(call.database, name, body, actor=call.actor, most_members=most)
    return answers.group_answer(call.database.system(), changed, PageQuery())


@operation("DELETE", "/system/groups/{name}", requires_root, weight=Weight.DEAR)
def delete_group(call: Call, name: str) -> DeletedGroup:
    """Deletes a group with its grants."""
    from svc_users import groups

    return DeletedGroup(True, groups.delete_group(call.database, name, actor=call.actor).name)


@operation("POST", "/system/grants", requires_root, status=201, errors=(NotFound,), weight=Weight.SMALL)
def create_grant(call: Call, body: NewGrant) -> Created[Grant]:
    """Grants a path to a group, or replaces the grant of the same group, path and pattern."""
    from svc_users import answers, granting

    made, is_new = granting.grant(
        call.database,
        parse_path(body.path),
        body.group,
        allow=body.allow,
        deny=body.deny,
        path_pattern=body.path_pattern,
        actor=call.actor,
        users=call.find_user,
    )
    return Created(answers.grant_answer(call, made), is_new)


@operation("GET", "/system/grants", requires_root, errors=(NotFound,), weight=Weight.DEAR)
def list_grants(call: Call, query: GrantQuery = GrantQuery()) -> GrantPage:
    """Lists grants: those on a path, those of a group, or all."""
    from svc_users import answers, granting, grants

    system = call.database.system()
    group = None if query.group is None else grants.require_group(system, query.group, call.find_user)
    page = granting.list_grants(
        system,
        path=None if query.path is None else parse_path(query.path),
        group=group,
        limit=query.limit,
        after=query.after,
        scanned=call.configuration.scanned,
    )
    return answers.page_answer(GrantPage, page, partial(answers.grant_answer, call))


@operation("GET", "/system/grants/{grant_id}", requires_root, weight=Weight.SMALL)
def show_grant(call: Call, grant_id: str) -> Grant:
    """Shows a grant."""
    from svc_users import answers, granting

    return answers.grant_answer(call, granting.require_grant(call.database.system(), grant_id))


@operation("DELETE", "/system/grants/{grant_id}", requires_root, weight=Weight.SMALL)
def delete_grant(call: Call, grant_id: str) -> DeletedGrant:
    """Takes a grant back."""
    from svc_users import answers, granting

    gone = granting.ungrant(call.database, grant_id, actor=call.actor)
    return answers.deleted_grant(call, gone)


@operation("GET", "/system/access", requires_root, errors=(NotFound,), weight=Weight.DEAR)
def explain_access(call: Call, query: AccessQuery) -> Access:
    """Explains what a user may do to a path, rule by rule."""
    from svc_users import explaining

    return explaining.explain_access(call.database.system(), parse_path(query.path), query.user)


@operation("GET", "/system/access/listing", requires_root, errors=(NotFound,), weight=Weight.DEAR)
def list_as_user(call: Call, query: SeeingQuery) -> SeenDirectory:
    """Lists a directory as a user would see it; nobody is signed in."""
    from svc_users import seeing

    return seeing.see_directory(
        call.database,
        call.version,
        parse_path(query.path),
        query.user,
        limit=query.limit,
        after=query.after,
        scanned=call.configuration.scanned,
    )


def named_user(service: Service, name_or_id: str) -> User:
    """Returns the user of an id or, if it is none, of a name, with the names of all groups; blocks.

    Raises:
        NotFound: there is none.
    """
    return service.call(show_user, id_of_user(service, name_or_id))


def id_of_user(service: Service, name_or_id: str) -> str:
    """Returns an id in its one spelling, or the id of the user of a name; blocks.

    Raises:
        NotFound: there is no user of the name. An id is not looked up.
    """
    from svc_users.names import user_id_of

    user_id = user_id_of(name_or_id)
    if user_id is None:
        found = service.call(list_users, UserQuery(username=name_or_id)).users
        if not found:
            raise NotFound("There is no such user.", user=name_or_id[:200])
        user_id = found[0].user_id
    return user_id
