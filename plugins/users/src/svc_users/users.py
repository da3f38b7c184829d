"""Making, changing, deactivating and listing users.

A username is a file of its own, so that of many who want one name the commit lets exactly one have it, in
whatever process they are. Users are never deleted: an id that stands in a log or a grant stays one person's.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from svc.errors import AlreadyExists, Conflict, NotFound, PreconditionFailed
from svc.plugin import ROOT_USER_ID, Condition, Database, Transaction, Version, attempt
from svc_users.changing import NEW, Page, erase, page_of, present_ms
from svc_users.lookup import find_user, find_user_by_name, names_in
from svc_users.models import UserChange, UserQuery
from svc_users.names import (
    ROOT_NAME,
    checked_email,
    checked_tags,
    checked_username,
    name_key,
    normal_text,
    tag_key,
    user_id_of,
)
from svc_users.records import (
    USERS,
    User,
    encode,
    inactive_file,
    user_file,
    user_tag_file,
    username_file,
)

__all__ = ["change_user", "create_user", "list_users", "require_user"]


def require_user(system: Version, user_id: str) -> User:
    """Returns the user with an id."""
    user = find_user(system, user_id)
    if user is None:
        raise NotFound("There is no user with this id.", user_id=user_id[:64])
    return user


def create_user(
    database: Database,
    username: str,
    *,
    email: str | None = None,
    tags: list[str] | tuple[str, ...] = (),
    is_active: bool = True,
    actor: str | None = None,
) -> User:
    """Makes a user and returns it; blocks for a commit.

    Raises AlreadyExists for the username, and InvalidInput, whose ``field`` names a malformed value.
    """
    now = present_ms(database)
    user = User(
        user_id=str(uuid.uuid4()),
        username=checked_username(username),
        email=checked_email(email),
        is_active=is_active,
        tags=checked_tags(tags),
        created_at=now,
        updated_at=now,
    )
    _require_free_name(database.system(), user)
    transaction = database.transaction(actor=actor, message=f"make user {user.username}")
    transaction.put_system(username_file(user.username), user.user_id.encode(), condition=NEW)
    transaction.put_system(user_file(user.user_id), encode(user), condition=NEW)
    for tag in user.tags:
        transaction.put_system(user_tag_file(tag, user.user_id), b"")
    if not user.is_active:
        transaction.put_system(inactive_file(user.user_id), b"")
    try:
        transaction.commit()
    except PreconditionFailed:
        raise _taken(user.username) from None
    return user


def change_user(database: Database, user_id: str, change: UserChange, *, actor: str | None = None) -> User:
    """Changes a user and returns it as it is now; blocks for a commit, unless nothing is different.

    Raises as ``create_user``, NotFound, and Conflict for root, who can't be changed, or where others change
    the user all the time.
    """
    if user_id_of(user_id) == ROOT_USER_ID:
        raise Conflict("Root is not a user that can be changed or deactivated.", user_id=ROOT_USER_ID)

    def once() -> User:
        system = database.system()
        before = require_user(system, user_id)
        after = _changed(before, change)
        if after == before:
            return before
        after = msgspec.structs.replace(after, updated_at=max(present_ms(database), before.updated_at))
        message = f"{_verb(before, after)} user {after.username}"
        transaction = database.transaction(actor=actor, message=message)
        _add_change(transaction, system, before, after)
        transaction.commit()
        return after

    return attempt(once, "The user")


def list_users(system: Version, wanted: UserQuery, *, scanned: int = 10_000) -> Page[User]:
    """Returns a page of the users, in the order of their ids.

    At most ``scanned`` records are looked at; a page that ends there says that more follows.
    """
    return page_of(_candidates(system, wanted, wanted.after), wanted.limit, scanned)


def _candidates(system: Version, wanted: UserQuery, after: str | None) -> Iterator[tuple[str, User | None]]:
    if wanted.username is not None:
        found = find_user_by_name(system, wanted.username)
        ids = iter(
            () if found is None or (after is not None and found.user_id <= after) else (found.user_id,)
        )
    elif wanted.tag is not None:
        ids = names_in(system, (*USERS, "by-tag", tag_key(wanted.tag)), after=after)
    else:
        ids = names_in(system, (*USERS, "by-id"), after=after)
    for user_id in ids:
        user = find_user(system, user_id)
        yield user_id, user if user is not None and _fits(user, wanted) else None


def _changed(user: User, change: UserChange) -> User:
    return msgspec.structs.replace(
        user,
        username=user.username if change.username is UNSET else checked_username(change.username),
        email=user.email if change.email is UNSET else checked_email(change.email),
        tags=user.tags if change.tags is UNSET else checked_tags(change.tags),
        is_active=user.is_active if change.is_active is UNSET else change.is_active,
    )


def _fits(user: User, wanted: UserQuery) -> bool:
    return (
        (wanted.username is None or name_key(user.username) == name_key(wanted.username))
        and (wanted.tag is None or normal_text(wanted.tag) in user.tags)
        and (wanted.is_active is None or user.is_active == wanted.is_active)
    )


def _add_change(transaction: Transaction, system: Version, before: User, after: User) -> None:
    """Adds a change to a transaction, whose commit fails unless the user is what it was."""
    path = user_file(after.user_id)
    present = system.get(path)
    assert present is not None
    condition = Condition(if_match=(present.hash.hex(),))
    transaction.put_system(path, encode(after), condition=condition)
    if after.is_active and not before.is_active:
        erase(transaction, inactive_file(after.user_id))
    elif before.is_active and not after.is_active:
        transaction.put_system(inactive_file(after.user_id), b"")
    if name_key(before.username) != name_key(after.username):
        _require_free_name(system, after)
        transaction.put_system(username_file(after.username), after.user_id.encode(), condition=NEW)
        # An import may have brought another user of the old name, whose name it stays.
        holder = find_user_by_name(system, before.username)
        if holder is not None and holder.user_id == before.user_id:
            transaction.delete_system(username_file(before.username))
    for tag in set(after.tags) - set(before.tags):
        transaction.put_system(user_tag_file(tag, after.user_id), b"")
    for tag in set(before.tags) - set(after.tags):
        erase(transaction, user_tag_file(tag, after.user_id))


def _verb(before: User, after: User) -> str:
    if before.is_active == after.is_active:
        return "change"
    return "activate" if after.is_active else "deactivate"


def _require_free_name(system: Version, user: User) -> None:
    is_root = name_key(user.username) == name_key(ROOT_NAME)
    if is_root or system.get(username_file(user.username)) is not None:
        raise _taken(user.username)


def _taken(username: str) -> AlreadyExists:
    return AlreadyExists("A user of this name exists.", username=username, field="username")
