"""What the operations on users, groups, grants and their explanation take and answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from svc.plugin import Page

__all__ = [
    "MOST_ITEMS",
    "Access",
    "AccessGrant",
    "AccessGroup",
    "AccessLevel",
    "AccessQuery",
    "DeactivatedUser",
    "Decision",
    "DeletedGrant",
    "DeletedGroup",
    "Grant",
    "GrantPage",
    "GrantQuery",
    "Group",
    "GroupChange",
    "GroupPage",
    "NewGrant",
    "NewGroup",
    "NewUser",
    "PageQuery",
    "SeeingQuery",
    "SeenDirectory",
    "SeenEntry",
    "User",
    "UserChange",
    "UserPage",
    "UserQuery",
]

NO_FLAGS = "--------"
MOST_ITEMS = 10_000
"""Items of a part of a list, at most."""

Flags = Annotated[str, Meta(description="Eight letters of crudlify, each in its place, or hyphens.")]
Time = Annotated[int, Meta(description="Unix milliseconds.")]


class PageQuery(Struct, frozen=True, kw_only=True):
    """Which part of a list is asked for."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ITEMS, description="Most items of the part.")] = 1000
    after: Annotated[str | None, Meta(description="The next_cursor of the part before.")] = None


class User(Struct, frozen=True, kw_only=True):
    """A user; where one was asked for also with the names of all its groups."""

    user_id: str
    username: str
    email: str | None
    is_active: bool
    tags: list[str]
    created_at: Time
    updated_at: Time
    groups: list[str] | UnsetType = UNSET


class UserPage(Page[User], frozen=True):
    """A part of the list of users."""

    users: list[User]


class UserQuery(PageQuery, frozen=True, kw_only=True):
    """Which users are listed."""

    username: Annotated[str | None, Meta(description="Of this name, in any spelling of it.")] = None
    tag: Annotated[str | None, Meta(description="Those who carry this tag.")] = None
    is_active: Annotated[bool | None, Meta(description="Those who may sign in, or those who may not.")] = None


class NewUser(Struct, frozen=True, forbid_unknown_fields=True):
    """A user to be made."""

    username: str
    email: str | None = None
    tags: list[str] = []
    is_active: bool = True


class UserChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shall be different of a user; what is left out stays."""

    username: str | UnsetType = UNSET
    email: str | UnsetType | None = UNSET
    tags: list[str] | UnsetType = UNSET
    is_active: bool | UnsetType = UNSET


class DeactivatedUser(Struct, frozen=True):
    """A user who was deactivated."""

    deactivated: Literal[True]
    user_id: str
    username: str


class Group(Page[str], frozen=True):
    """A group with a part of the ids of its members; ``member_count`` says how many there are."""

    name: str
    members: list[str]
    member_count: int
    tags: Annotated[list[str], Meta(description="All who carry one of these are members too.")]
    created_at: Time


class GroupPage(Page[Group], frozen=True):
    """A part of the list of groups, each with its first members."""

    groups: list[Group]


class NewGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """A group to be made; members are user ids."""

    name: str
    members: list[str] = []
    tags: list[str] = []


class GroupChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shall be different of a group; what is left out stays.

    ``members`` and ``tags`` take the place of all others. Members are user ids.
    """

    members: list[str] | UnsetType = UNSET
    add_members: list[str] = []
    remove_members: list[str] = []
    tags: list[str] | UnsetType = UNSET


class DeletedGroup(Struct, frozen=True):
    """A group that was deleted with its grants."""

    deleted: Literal[True]
    name: str


class Grant(Struct, frozen=True, kw_only=True):
    """What a group may do, and may not do, to a path and what is below it."""

    grant_id: str
    path: str
    group: str
    allow: Flags
    deny: Flags
    path_pattern: str | None
    created_at: Time
    created_by: Annotated[str | None, Meta(description="Id of the user who made it, if known.")]
    username: Annotated[str | None, Meta(description="Of the user whose own group it is, if known.")]
    created_by_name: Annotated[str | None, Meta(description="Name of the user who made it, if known.")]


class GrantPage(Page[Grant], frozen=True):
    """A part of the list of grants."""

    grants: list[Grant]


class GrantQuery(PageQuery, frozen=True, kw_only=True):
    """Which grants are listed."""

    path: Annotated[str | None, Meta(description="Those on this path itself.")] = None
    group: Annotated[str | None, Meta(description="Those of this group.")] = None


class NewGrant(Struct, frozen=True, forbid_unknown_fields=True):
    """A grant to be made, or to take the place of that of the same group, path and pattern."""

    path: str
    group: str
    allow: Flags = NO_FLAGS
    deny: Flags = NO_FLAGS
    path_pattern: Annotated[str | None, Meta(description="Narrows it to paths below that match.")] = None


class DeletedGrant(Grant, frozen=True, kw_only=True):
    """A grant that was taken back."""

    deleted: Literal[True]


class AccessQuery(Struct, frozen=True):
    """Whose access to what is explained; a user by id or name."""

    path: str
    user: str


class SeeingQuery(PageQuery, frozen=True, kw_only=True):
    """As whom which directory is looked at; a user by id or name, and after which name the part begins."""

    path: str
    user: str


class SeenEntry(Struct, frozen=True):
    """An entry that a user would see; of directories neither size nor time."""

    name: str
    kind: str
    permissions: Flags
    size: int | None
    updated_at: Time | None


class SeenDirectory(Page[SeenEntry], frozen=True, kw_only=True):
    """A directory as a user would see it.

    ``is_active`` says whether the user may sign in at all, and ``is_shown`` whether the directory is there
    for the user: one that may not be seen looks as if it were missing.
    """

    path: str
    user_id: str
    username: str
    is_active: bool
    is_shown: bool
    permissions: Flags
    entries: list[SeenEntry]


class AccessGroup(Struct, frozen=True):
    """A group that a user is in, and why: ``self``, ``member``, or ``tag <tag>``."""

    group: str
    by: str


class AccessGrant(Struct, frozen=True):
    """A grant of one of the user's groups; ``applies`` is false where its pattern leaves the path out."""

    grant_id: str
    group: str
    allow: Flags
    deny: Flags
    path_pattern: str | None
    applies: bool


class AccessLevel(Struct, frozen=True):
    """A path at or above the one that is asked for, with the grants that hang on it."""

    path: str
    grants: list[AccessGrant]


class Decision(Struct, frozen=True):
    """What came out for an operation; ``flag`` is its letter, ``reason`` says the same in words.

    ``level`` is the path whose grants decided; null: no grant says anything. Groups and grants are those that
    decided.
    """

    operation: str
    flag: str
    allowed: bool
    level: str | None
    groups: list[str]
    grant_ids: list[str]
    reason: str


class Access(Struct, frozen=True):
    """What a user may do to a path, and why; links are not followed.

    ``is_active`` says whether the user may sign in at all, ``is_root`` whether everything is allowed,
    ``permissions`` has the flags of what is allowed, ``levels`` the grants that have a say, from the path
    itself up to the root, and ``decisions`` what came out for each operation.
    """

    path: str
    user_id: str
    username: str
    is_active: bool
    is_root: bool
    permissions: Flags
    groups: list[AccessGroup]
    levels: list[AccessLevel]
    decisions: list[Decision]
