"""Grants in the system tree: read by group and by path, put, and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from svc.errors import InvalidInput, NotFound
from svc.plugin import (
    KnownUser,
    Path,
    Transaction,
    Version,
    format_path,
    hash_content,
    is_system_path,
    parse_path,
)
from svc_users.changing import keep
from svc_users.lookup import find_user, group_named
from svc_users.names import name_key, path_key, user_of_own_group
from svc_users.records import (
    FLAGS,
    GRANTS_BY_PATH,
    NO_FLAGS,
    Grant,
    decode_grant,
    encode,
    grant_file,
    grant_hint,
    grants_of_group,
    group_file,
    path_of,
)
from svc_users.rights import mask_of

__all__ = [
    "UserLookup",
    "checked_grant",
    "find_grant",
    "grants_at",
    "grants_of",
    "put_grant",
    "remove_grant",
    "require_group",
]

_ID_DIGITS = 32


UserLookup = Callable[[str], KnownUser | None]
"""Finds users by id or name: ``AuthMode.find_user``, since a mode may keep its users elsewhere."""


def require_group(system: Version, name: str, users: UserLookup | None = None) -> str:
    """Returns the name of a group as it is stored; that of a user's own group is ``user:<id>``.

    Args:
        system: the system tree.
        name: of the group, in any case.
        users: knows users whom the database does not keep; None: there are no others.

    Raises:
        NotFound: there is no such group, or no such user.
    """
    user_id = user_of_own_group(name)
    if user_id is not None:
        if find_user(system, user_id) is None and (users is None or users(user_id) is None):
            raise NotFound("There is no user with this id.", group=name)
        return name.lower()
    group = group_named(system, name)
    if group is None:
        raise NotFound("There is no group of this name.", group=name[:200])
    return group.name


def grants_at(system: Version, path: Path) -> Iterator[Grant]:
    """Yields the grants that hang on a path itself."""
    directory = (*GRANTS_BY_PATH, path_key(path))
    if system.get(directory) is None:
        return
    for grant_id, _ in system.entries(directory):
        grant = find_grant(system, grant_id)
        if grant is not None:
            yield grant


def grants_of(system: Version, group: str, *, after: str | None = None) -> Iterator[Grant]:
    """Yields the grants of a group in the order of their ids.

    A group that does not exist has none.
    """
    directory = grants_of_group(name_key(group))
    if system.get(directory) is None:
        return
    for _, entry in system.entries(directory, after=None if after is None else after.partition("-")[2]):
        grant = decode_grant(system, entry)
        if grant is not None:
            yield grant


def find_grant(system: Version, grant_id: str) -> Grant | None:
    """Returns the grant with an id, or None."""
    path = grant_file(grant_id)
    entry = system.get(path) if all(path) else None
    return None if entry is None else decode_grant(system, entry)


def checked_grant(
    path: Path,
    group: str,
    *,
    allow: str = NO_FLAGS,
    deny: str = NO_FLAGS,
    path_pattern: str | None = None,
    created_at: int,
    created_by: str | None = None,
) -> Grant:
    """Returns a new grant, whose parts are checked.

    Raises:
        NotFound: the path belongs to the system.
        InvalidInput: flags or pattern are malformed, or the grant says nothing.
    """
    if is_system_path(path):
        raise NotFound("Nothing is at this path.", path=format_path(path))
    for field, flags in (("allow", allow), ("deny", deny)):
        if mask_of(flags, -1) < 0:
            raise InvalidInput(
                f"{field} has exactly {len(FLAGS)} characters, the letters {FLAGS} or '-' in their places.",
                field=field,
            )
    if allow == deny == NO_FLAGS:
        raise InvalidInput("A grant allows or denies at least one operation.", field="allow")
    pattern = None if path_pattern is None else _checked_pattern(path_pattern)
    grant_id = f"{name_key(group)}-{_id_of(path, pattern)}"
    return Grant(
        grant_id=grant_id,
        path=format_path(path),
        group=group,
        allow=allow,
        deny=deny,
        path_pattern=pattern,
        created_at=created_at,
        created_by=created_by,
    )


def put_grant(
    transaction: Transaction, system: Version, grant: Grant, users: UserLookup | None = None
) -> None:
    """Adds a grant to a transaction; one of the same group, path and pattern is replaced.

    Args:
        transaction: where; its commit raises PreconditionFailed when the group was changed or deleted since
            ``system`` was read: read it again, and try again.
        system: the system tree as it is now.
        grant: what ``checked_grant`` returned.
        users: as for ``require_group``.

    Raises:
        NotFound: the group, or the user whose own group it is, does not exist.
    """
    require_group(system, grant.group, users)
    if user_of_own_group(grant.group) is None:
        keep(transaction, system, group_file(name_key(grant.group)))
    transaction.put_system(grant_file(grant.grant_id), encode(grant))
    transaction.put_system(grant_hint(grant.grant_id, path_of(grant)), b"")


def remove_grant(transaction: Transaction, grant: Grant) -> None:
    """Adds the removal of a grant to a transaction, whose commit raises NotFound when it is gone already."""
    transaction.delete_system(grant_file(grant.grant_id))
    transaction.delete_system(grant_hint(grant.grant_id, path_of(grant)))


def _checked_pattern(pattern: str) -> str:
    try:
        segments = parse_path(pattern)
    except InvalidInput as error:
        raise InvalidInput(f"The pattern is none: {error.message}", field="path_pattern") from None
    if not segments:
        raise InvalidInput("A pattern has at least one segment.", field="path_pattern")
    return "/".join(segments)


def _id_of(path: Path, pattern: str | None) -> str:
    text = format_path(path) if pattern is None else f"{format_path(path)}\0{pattern}"
    return hash_content(text.encode()).hex()[:_ID_DIGITS]
