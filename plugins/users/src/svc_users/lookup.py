"""Users and groups in the system tree, found by id, by name and by membership."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from svc.errors import NotFound
from svc.plugin import EntryKind, Path, Version
from svc_users.names import OWN_GROUP_PREFIX, name_key, own_group, tag_key, user_id_of
from svc_users.records import (
    GRANTS,
    GRANTS_BY_PATH,
    GROUPS,
    USERS,
    Group,
    User,
    group_file,
    group_hints,
    inactive_file,
    member_file,
    record_at,
    user_file,
    username_file,
)

__all__ = [
    "find_user",
    "find_user_by_name",
    "group_named",
    "groups_of",
    "identity_stamp",
    "memberships",
    "named_user",
    "names_in",
]

_MAXIMUM_ID_BYTES = 64


def find_user(system: Version, user_id: str) -> User | None:
    """Returns the user with an id, active or not; None when there is none. Root is not stored."""
    normal = user_id_of(user_id)
    found = None if normal is None else record_at(system, user_file(normal), User)
    if found is not None and found.is_active and system.get(inactive_file(found.user_id)) is not None:
        return replace(found, is_active=False)
    return found


def find_user_by_name(system: Version, username: str) -> User | None:
    """Returns the user of a name, in any spelling of it; None when there is none."""
    entry = system.get(username_file(username))
    if entry is None or entry.kind is not EntryKind.FILE or entry.size > _MAXIMUM_ID_BYTES:
        return None
    return find_user(system, system.read_all(entry).decode("ascii", "replace"))


def user_of_own_group(system: Version, group: str) -> User | None:
    """Returns the only member of a group ``user:<id>``; None for any other group."""
    prefix, _, user_id = group.partition(":")
    return find_user(system, user_id) if f"{prefix}:" == OWN_GROUP_PREFIX else None


def named_user(system: Version, name_or_id: str) -> User:
    """Returns the user of an id or, if it is none, of a name."""
    if user_id_of(name_or_id) is not None:
        found = find_user(system, name_or_id)
    else:
        found = find_user_by_name(system, name_or_id)
    if found is None:
        raise NotFound("There is no such user.", user=name_or_id[:200])
    return found


def group_named(system: Version, name: str) -> Group | None:
    """Returns the group of a name, in any spelling of it; None when there is none."""
    return record_at(system, group_file(name_key(name)), Group)


def groups_of(system: Version, user: User) -> frozenset[str]:
    """Returns the names of all groups that a user is in: by membership, by tags, and the user's own."""
    return frozenset(group.name for _, group in memberships(system, user)) | {own_group(user.user_id)}


def memberships(system: Version, user: User) -> Iterator[tuple[str, Group]]:
    """Yields the groups that a user is in, but the user's own: (the tag that did it or "", group).

    A group comes once by membership and once for each tag.
    """
    for key in names_in(system, group_hints(user.user_id)):
        if system.get(member_file(key, user.user_id)) is None:
            continue
        group = record_at(system, group_file(key), Group)
        if group is not None:
            yield "", group
    for tag in user.tags:
        for key in names_in(system, (*GROUPS, "of-tag", tag_key(tag))):
            group = record_at(system, group_file(key), Group)
            if group is not None and tag in group.tags:
                yield tag, group


def names_in(system: Version, directory: Path, *, after: str | None = None) -> Iterator[str]:
    """Yields the names in a directory of the system tree, in order; none where there is no directory."""
    entry = system.get(directory)
    if entry is not None and entry.kind is EntryKind.DIRECTORY:
        for name, _ in system.entries(directory, after=after):
            yield name


def identity_stamp(system: Version) -> tuple[bytes | None, ...]:
    """Returns a value that is another one whenever a user, a group or a grant has changed; a few lookups."""
    found = (system.get(path) for path in (USERS, GROUPS, GRANTS, GRANTS_BY_PATH))
    return tuple(None if entry is None else entry.hash for entry in found)
