"""The records of the system tree: users, groups and grants, as values and as JSON."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import msgspec

from svc.errors import InvalidPath
from svc.plugin import Entry, Path, Version, parse_path, read_record
from svc_users.names import name_key, path_key, tag_key

__all__ = [
    "FLAGS",
    "GRANTS",
    "GRANTS_BY_PATH",
    "GROUPS",
    "NO_FLAGS",
    "USERS",
    "Grant",
    "Group",
    "User",
    "decode_grant",
    "encode",
    "grant_file",
    "grant_hint",
    "grants_of_group",
    "group_file",
    "group_hints",
    "group_tag_file",
    "inactive_file",
    "member_file",
    "members_of",
    "path_of",
    "record_at",
    "user_file",
    "user_tag_file",
    "username_file",
]

FLAGS = "crudlify"
NO_FLAGS = "-" * len(FLAGS)

USERS: Path = ("users",)
GROUPS: Path = ("groups",)
GRANTS: Path = ("grants",)
GRANTS_BY_PATH: Path = ("grants-by-path",)

T = TypeVar("T", bound=msgspec.Struct)


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user.

    Attributes:
        user_id: a UUID, as lower-case text.
        username: unique; case and Unicode normalization form do not make a difference.
        email: where mail goes, if known.
        is_active: whether the user may do anything at all.
        tags: groups that name one of them have the user as a member.
        created_at: Unix milliseconds.
        updated_at: Unix milliseconds.
    """

    user_id: str
    username: str
    email: str | None = None
    is_active: bool = True
    tags: tuple[str, ...] = ()
    created_at: int
    updated_at: int


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group. Its members are files beside its record.

    Attributes:
        name: unique, as usernames are.
        tags: users who carry one of them belong.
        created_at: Unix milliseconds.
    """

    name: str
    tags: tuple[str, ...] = ()
    created_at: int


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a group may do, and may not do, to a path and what is below it.

    Attributes:
        grant_id: follows from group, path and pattern: whoever grants again replaces.
        path: absolute text of the path.
        group: name of the group; ``user:<id>`` is one user's own.
        allow: 8 flag letters: what is allowed.
        deny: 8 flag letters: what is denied.
        path_pattern: narrows the grant to paths that match; relative to the path, in the syntax of key rules.
        created_at: Unix milliseconds.
        created_by: who made it (a user id), if known.
    """

    grant_id: str
    path: str
    group: str
    allow: str = NO_FLAGS
    deny: str = NO_FLAGS
    path_pattern: str | None = None
    created_at: int
    created_by: str | None = None


def encode(record: msgspec.Struct) -> bytes:
    """Returns a record as it is stored."""
    return msgspec.json.encode(record)


# -- where they stand in the system tree ---------------------------------------------------------------


def user_file(user_id: str) -> Path:
    """The record of a user."""
    return (*USERS, "by-id", user_id)


def inactive_file(user_id: str) -> Path:
    """The file that says that a user is deactivated, whatever the record says.

    It is a file of its own, so that in a cluster another change of the user can't undo it.
    """
    return (*USERS, "inactive", user_id)


def username_file(username: str) -> Path:
    """The file that holds the id of the user of this name."""
    return (*USERS, "by-name", name_key(username))


def user_tag_file(tag: str, user_id: str) -> Path:
    """The file that says that a user carries a tag."""
    return (*USERS, "by-tag", tag_key(tag), user_id)


def group_file(key: str) -> Path:
    """The record of a group, by the key of its name."""
    return (*GROUPS, "by-name", key)


def members_of(key: str) -> Path:
    """The directory with a file for each member of a group, which is called by the user's id."""
    return (*GROUPS, "members", key)


def member_file(key: str, user_id: str) -> Path:
    """The file that makes a user a member of a group. It alone decides."""
    return (*members_of(key), user_id)


def group_hints(user_id: str) -> Path:
    """The directory with a file for each group that a user may be a member of, called by its key."""
    return (*GROUPS, "of-user", user_id)


def group_tag_file(tag: str, key: str) -> Path:
    """The file that says that a group may name a tag; the record of the group decides."""
    return (*GROUPS, "of-tag", tag_key(tag), key)


def grants_of_group(key: str) -> Path:
    """The directory of the grants of a group."""
    return (*GRANTS, key)


def grant_file(grant_id: str) -> Path:
    """The record of a grant. It alone decides."""
    key, _, rest = grant_id.partition("-")
    return (*grants_of_group(key), rest)


def grant_hint(grant_id: str, path: Path) -> Path:
    """The file that says that there may be a grant at a path."""
    return (*GRANTS_BY_PATH, path_key(path), grant_id)


# -- reading -------------------------------------------------------------------------------------------


def record_at(system: Version, path: Path, form: type[T]) -> T | None:
    """Returns the record at a path of the system tree; None when there is none, or none of this form."""
    return read_record(system, system.get(path), form)


def decode_grant(system: Version, entry: Entry) -> Grant | None:
    """Returns the grant that an entry holds, or None; not kept, as the rights made of it are."""
    grant = read_record(system, entry, Grant, keep=False)
    if grant is None:
        return None
    try:
        path_of(grant)
    except InvalidPath:
        return None
    return grant


def path_of(grant: Grant) -> Path:
    """Returns the path that a grant hangs on; InvalidPath for a grant that ``decode_grant`` does not give."""
    return _parsed(grant.path)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Path:
    return parse_path(text)
