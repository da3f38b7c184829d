"""Making, changing, deleting and listing groups.

Who is a member says a file beside the group's record, and what a group may do the directory of its grants.
Both go with the record, in one commit: a group that is made again under the same name begins with nothing.
The files that lead from a user to groups and from a path to grants are hints, which whoever reads them
checks; what a deleted group leaves of them is removed afterwards, in pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec
from msgspec import UNSET

from svc.errors import AlreadyExists, InvalidInput, NotFound, PayloadTooLarge, PreconditionFailed
from svc.plugin import Condition, Database, Path, Transaction, Version, attempt, in_turns
from svc_users.changing import NEW, Page, erase, keep, page_of, present_ms
from svc_users.grants import grants_of
from svc_users.lookup import find_user, group_named, names_in
from svc_users.models import GroupChange
from svc_users.names import checked_group_name, checked_tags, name_key, user_id_of
from svc_users.records import (
    GROUPS,
    Group,
    encode,
    grant_hint,
    grants_of_group,
    group_file,
    group_hints,
    group_tag_file,
    member_file,
    members_of,
    path_of,
    record_at,
)

__all__ = [
    "change_group",
    "create_group",
    "delete_group",
    "list_groups",
    "list_members",
    "member_count",
    "require_named_group",
]

MOST_MEMBERS = 1_000
_CLEARED_AT_ONCE = 500


def require_named_group(system: Version, name: str) -> Group:
    """Returns the group of a name."""
    group = group_named(system, name)
    if group is None:
        raise NotFound("There is no group of this name.", group=name[:200])
    return group


def member_count(system: Version, group: Group) -> int:
    """Returns how many members a group has by name; those by tags are not counted."""
    directory = members_of(name_key(group.name))
    return 0 if system.get(directory) is None else system.entry_count(directory)


def list_members(system: Version, group: Group, *, limit: int, after: str | None = None) -> Page[str]:
    """Returns a page of the ids of a group's members by name, in order."""
    found = (
        (user_id, user_id) for user_id in names_in(system, members_of(name_key(group.name)), after=after)
    )
    return page_of(found, limit, limit)


def list_groups(system: Version, *, limit: int, after: str | None = None) -> Page[Group]:
    """Returns a page of the groups, in an order that stays."""
    keys = names_in(system, (*GROUPS, "by-name"), after=after)
    return page_of(((key, record_at(system, group_file(key), Group)) for key in keys), limit, 10 * limit)


def create_group(
    database: Database,
    name: str,
    *,
    members: Iterable[str] = (),
    tags: list[str] | tuple[str, ...] = (),
    actor: str | None = None,
    most_members: int = MOST_MEMBERS,
) -> Group:
    """Makes a group and returns it; blocks for a commit.

    Raises InvalidInput where a value is malformed, or a member is no user (``field`` names it),
    AlreadyExists, and PayloadTooLarge.
    """
    group = Group(name=checked_group_name(name), tags=checked_tags(tags), created_at=present_ms(database))
    key = name_key(group.name)
    ids = _checked_ids(list(members), "members", most_members)
    system = database.system()
    if system.get(group_file(key)) is not None:
        raise _taken(group.name)
    _require_users(system, ids, "members")
    transaction = database.transaction(actor=actor, message=f"make group {group.name}")
    transaction.put_system(group_file(key), encode(group), condition=NEW)
    for tag in group.tags:
        transaction.put_system(group_tag_file(tag, key), b"")
    _add_members(transaction, key, ids)
    try:
        transaction.commit()
    except PreconditionFailed:
        raise _taken(group.name) from None
    return group


def change_group(
    database: Database,
    name: str,
    change: GroupChange,
    *,
    actor: str | None = None,
    most_members: int = MOST_MEMBERS,
) -> Group:
    """Changes a group and returns it as it is now; blocks for a commit.

    Raises NotFound, and InvalidInput as ``create_group``. PayloadTooLarge is for more user ids than
    ``most_members``, in the change or, when all members are replaced, in the group.
    """
    change = _checked(change, most_members)

    def once() -> Group:
        system = database.system()
        before = require_named_group(system, name)
        after = before if change.tags is UNSET else msgspec.structs.replace(before, tags=tuple(change.tags))
        transaction = database.transaction(actor=actor, message=f"change group {before.name}")
        _add_tags(transaction, system, before, after)
        _add_membership(transaction, system, name_key(before.name), change, most_members)
        transaction.commit()
        return after

    return attempt(once, "The group")


def delete_group(database: Database, name: str, *, actor: str | None = None) -> Group:
    """Deletes a group with its grants and returns what it was; blocks for a commit, or for some.

    The first commit takes away the group, all memberships and all grants. What still leads to them is removed
    afterwards; if that is interrupted, the rest stays and means nothing.
    """
    read: list[Version] = []

    def once() -> Group:
        system = database.system()
        group = require_named_group(system, name)
        key = name_key(group.name)
        transaction = database.transaction(actor=actor, message=f"delete group {group.name}")
        keep(transaction, system, group_file(key))
        transaction.delete_system(group_file(key))
        for tag in group.tags:
            erase(transaction, group_tag_file(tag, key))
        erase(transaction, members_of(key), directory=True)
        for grant_id in names_in(system, grants_of_group(key)):
            # By its name, so that the record of the commit tells what went.
            erase(transaction, (*grants_of_group(key), grant_id))
        erase(transaction, grants_of_group(key), directory=True)
        transaction.commit()
        read[:] = [system]
        return group

    group = attempt(once, "The group")
    _clear_hints(database, read[0], group, actor)
    return group


def _clear_hints(database: Database, before: Version, group: Group, actor: str | None) -> None:
    """Removes what led to the members and grants of a group that is gone, unless it was made again."""
    key = name_key(group.name)
    hints = in_turns(_hints(before, group))
    while page := list(islice(hints, _CLEARED_AT_ONCE)):
        transaction = database.transaction(actor=actor, message=f"clear up after group {group.name}")
        transaction.put_system(group_file(key), b"", condition=NEW)
        transaction.delete_system(group_file(key))
        for path in page:
            erase(transaction, path)
        try:
            transaction.commit()
        except PreconditionFailed:
            return


def _hints(system: Version, group: Group) -> Iterator[Path]:
    key = name_key(group.name)
    for user_id in names_in(system, members_of(key)):
        yield (*group_hints(user_id), key)
    for grant in grants_of(system, group.name):
        yield grant_hint(grant.grant_id, path_of(grant))


def _add_tags(transaction: Transaction, system: Version, before: Group, after: Group) -> None:
    """Adds new tags to a transaction, whose commit fails unless the group is what it was."""
    key = name_key(before.name)
    path = group_file(key)
    if after == before:
        keep(transaction, system, path)
        return
    present = system.get(path)
    assert present is not None
    transaction.put_system(path, encode(after), condition=Condition(if_match=(present.hash.hex(),)))
    for tag in set(after.tags) - set(before.tags):
        transaction.put_system(group_tag_file(tag, key), b"")
    for tag in set(before.tags) - set(after.tags):
        erase(transaction, group_tag_file(tag, key))


def _add_membership(
    transaction: Transaction, system: Version, key: str, change: GroupChange, most: int
) -> None:
    if change.members is not UNSET:
        _require_users(system, change.members, "members")
        gone = _all_members(system, key, most)
        erase(transaction, members_of(key), directory=True)
        for user_id in sorted(gone - set(change.members)):
            erase(transaction, (*group_hints(user_id), key))
        _add_members(transaction, key, change.members)
        return
    _require_users(system, change.add_members, "add_members")
    _add_members(transaction, key, change.add_members)
    for user_id in change.remove_members:
        erase(transaction, member_file(key, user_id))
        erase(transaction, (*group_hints(user_id), key))


def _add_members(transaction: Transaction, key: str, ids: Iterable[str]) -> None:
    for user_id in in_turns(ids):
        transaction.put_system(member_file(key, user_id), b"")
        transaction.put_system((*group_hints(user_id), key), b"")


def _all_members(system: Version, key: str, most: int) -> set[str]:
    directory = members_of(key)
    if system.get(directory) is not None and system.entry_count(directory) > most:
        raise PayloadTooLarge(
            f"The group has more than {most} members; add_members and remove_members change it in parts.",
            field="members",
            limit=most,
        )
    return set(names_in(system, directory))


def _require_users(system: Version, ids: Iterable[str], field: str) -> None:
    for user_id in in_turns(ids):
        if find_user(system, user_id) is None:
            raise InvalidInput("There is no user with this id.", field=field, user_id=user_id)


def _checked(change: GroupChange, most: int) -> GroupChange:
    """Returns the change with all ids and tags in their normal form.

    Raises InvalidInput where a member is malformed, or two contradict each other (``field`` names one),
    and PayloadTooLarge for more than ``most`` user ids.
    """
    if change.members is not UNSET and (change.add_members or change.remove_members):
        raise InvalidInput("Members are replaced, or added and removed; not both at once.", field="members")
    added = _checked_ids(change.add_members, "add_members", most)
    removed = _checked_ids(change.remove_members, "remove_members", most)
    both = set(added) & set(removed)
    if both:
        raise InvalidInput("A user is added or removed, not both.", field="remove_members", user_id=min(both))
    return GroupChange(
        members=UNSET if change.members is UNSET else _checked_ids(change.members, "members", most),
        add_members=added,
        remove_members=removed,
        tags=UNSET if change.tags is UNSET else list(checked_tags(change.tags)),
    )


def _checked_ids(ids: list[str], field: str, most: int) -> list[str]:
    if len(ids) > most:
        raise PayloadTooLarge(f"One request names at most {most} members.", field=field, limit=most)
    found: dict[str, None] = {}
    for text in ids:
        user_id = user_id_of(text)
        if user_id is None:
            raise InvalidInput("A member is the id of a user, a UUID.", field=field)
        found[user_id] = None
    return list(found)


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists("A group of this name exists.", group=name, field="name")
