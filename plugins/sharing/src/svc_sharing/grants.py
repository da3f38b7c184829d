"""Shares with users and groups: grants that hang on a path, made and taken back many at a time."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import msgspec

from svc.errors import InvalidInput, NotFound, PayloadTooLarge
from svc.plugin import (
    Database,
    Entry,
    Identity,
    KnownUser,
    Path,
    Transaction,
    Version,
    effective_permissions,
    format_path,
    parse_path,
    pause,
    seal,
    unseal,
)
from svc_sharing.models import (
    MOST_ITEMS,
    EndedShares,
    NewShares,
    OldShares,
    Share,
    SharedPath,
    SharedPathPage,
    SharedPaths,
    SharedWith,
    SharePage,
)
from svc_sharing.retrying import commit_decided
from svc_sharing.shared_paths import (
    checked_permissions,
    parsed_paths,
    present_paths,
    require_known,
)
from svc_users.api import (
    Grant,
    RightsCache,
    UserLookup,
    checked_grant,
    find_grant,
    find_user,
    find_user_by_name,
    grants_at,
    grants_of,
    groups_of,
    own_group,
    put_grant,
    remove_grant,
    require_group,
    user_of_own_group,
)

__all__ = ["SHARE_MESSAGE", "list_shares", "share", "shared_with", "shared_with_user", "unshare"]

NO_FLAGS = "-" * 8
SHARE_MESSAGE = "share"
"""What the commit of a share says. Events of old commits are known by it."""

_MOST_LOOKED_AT = 1_000
_TURN = 32
_PURPOSE = "sharing"


class _Receivers(msgspec.Struct, frozen=True):
    """Users and groups that exist, and the groups that grants are for."""

    users: list[KnownUser]
    groups: list[str]

    @property
    def all_groups(self) -> list[str]:
        return [*(own_group(user.user_id) for user in self.users), *self.groups]


def share(
    database: Database,
    wanted: NewShares,
    *,
    most: int,
    actor: str | None,
    users: UserLookup | None = None,
) -> SharedPaths:
    """Shares paths with users and groups, in one commit; blocks.

    Who had a share of a path has the new one instead; what is denied there stays denied. ``most`` bounds the
    grants that are made. ``users`` knows the users of the auth mode,
    wherever it keeps them; None: those of the database alone.

    Raises NotFound for a path, a user or a group, InvalidInput where something is malformed or nobody is
    named, and PayloadTooLarge.
    """
    flags = checked_permissions(wanted.permissions)
    paths = _bounded_paths(wanted, most)
    present_paths(database.at(), paths)
    now_ms = time.time_ns() // 1_000_000

    def decide(transaction: Transaction, system: Version) -> _Receivers:
        receivers = _receivers(system, wanted, users)
        for path, group in _pairs(paths, receivers):
            grant = checked_grant(path, group, allow=flags, created_at=now_ms, created_by=actor)
            present = find_grant(system, grant.grant_id)
            if present is not None:
                grant = msgspec.structs.replace(grant, deny=present.deny)
            put_grant(transaction, system, grant, users)
        return receivers

    receivers = commit_decided(database, decide, actor=actor, message=SHARE_MESSAGE)
    return SharedPaths(
        paths=[format_path(path) for path in paths],
        users=[SharedWith(user.user_id, user.name) for user in receivers.users],
        groups=receivers.groups,
        permissions=flags,
        shared_at=now_ms,
    )


def unshare(
    database: Database,
    ended: OldShares,
    *,
    most: int,
    actor: str | None,
    users: UserLookup | None = None,
) -> EndedShares:
    """Takes shares back, in one commit; blocks. Paths need not exist any more.

    What is denied at the same place stays denied. Raises as ``share``; NotFound also where nothing of this is
    shared with any of them.
    """
    paths = _bounded_paths(ended, most)

    def decide(transaction: Transaction, system: Version) -> int:
        removed = 0
        for path, group in _pairs(paths, _receivers(system, ended, users)):
            wanted = checked_grant(path, group, allow="crudlify", created_at=0)
            present = find_grant(system, wanted.grant_id)
            if present is None or present.allow == NO_FLAGS:
                continue
            removed += 1
            if present.deny == NO_FLAGS:
                remove_grant(transaction, present)
            else:
                put_grant(transaction, system, msgspec.structs.replace(present, allow=NO_FLAGS), users)
        return removed

    removed = commit_decided(database, decide, actor=actor, message="unshare")
    if not removed:
        raise NotFound("None of these paths is shared with any of them.", field="paths")
    return EndedShares(removed, [format_path(path) for path in paths])


def list_shares(
    database: Database, path: Path, *, limit: int, after: str | None, users: UserLookup | None = None
) -> SharePage:
    """Returns a page of the grants that hang on a path itself, by their ids."""
    system = database.system()
    found = (grant for grant in grants_at(system, path) if after is None or grant.grant_id > after)
    page = list(islice(found, limit + 1))
    shares = [_share(system, grant, users) for grant in page[:limit]]
    has_more = len(page) > limit
    cursor = shares[-1].grant_id if has_more else None
    return SharePage(format_path(path), shares, has_more=has_more, next_cursor=cursor)


def shared_with(
    groups: Iterable[str],
    database: Database,
    version: Version,
    *,
    permissions_of: Callable[[Path], str],
    limit: int,
    after: str | None,
) -> SharedPathPage:
    """Returns a page of what is granted to groups at paths that exist, and that the caller may know of.

    A page looks at no more than 1,000 grants, and may be short then.

    Args:
        groups: names of the groups.
        database: has the grants. It seals the cursor, which may name one that the caller must not see.
        version: what decides which paths exist.
        permissions_of: returns the flags of what the caller may do to a path.
        limit: most items of a page.
        after: the cursor of the page before.
    """
    found: list[SharedPath] = []
    key = database.database_id
    place = None if after is None else _place(key, after)
    for number, (group, grant) in enumerate(_grants_after(groups, database.system(), place)):
        if number % _TURN == _TURN - 1:
            pause()
        if grant.allow != NO_FLAGS:
            path = parse_path(grant.path)
            flags = permissions_of(path)
            entry = None if flags == NO_FLAGS else version.get(path)
            if flags != NO_FLAGS and (not path or entry is not None):
                found.append(_shared_path(path, grant, entry, flags))
        if len(found) == limit or number + 1 == _MOST_LOOKED_AT:
            cursor = _cursor(key, group, grant.grant_id)
            return SharedPathPage(found, has_more=True, next_cursor=cursor)
    return SharedPathPage(found)


def shared_with_user(database: Database, name_or_id: str) -> Iterator[SharedPath]:
    """Yields what is shared with a user whom the database keeps; NotFound where there is none."""
    version, system = database.at(), database.system()
    user = find_user(system, name_or_id) or find_user_by_name(system, name_or_id)
    if user is None:
        raise NotFound("There is no user of this id or name.", field="as")
    groups = groups_of(system, user)
    rights = RightsCache(database).of(groups, system) if user.is_active else None
    identity = Identity(user.user_id, user.username, groups=groups, rights=rights)
    permissions_of = partial(effective_permissions, identity)
    after: str | None = None
    while True:
        page = shared_with(
            groups, database, version, permissions_of=permissions_of, limit=MOST_ITEMS, after=after
        )
        yield from page.paths
        after = page.next_cursor
        if after is None:
            return


def _grants_after(
    groups: Iterable[str], system: Version, place: tuple[str, str] | None
) -> Iterator[tuple[str, Grant]]:
    first, grant_id = ("", None) if place is None else place
    for group in sorted(groups):
        if group >= first:
            for grant in grants_of(system, group, after=grant_id if group == first else None):
                yield group, grant


def _share(system: Version, grant: Grant, users: UserLookup | None) -> Share:
    user_id = user_of_own_group(grant.group)
    user = None if user_id is None else _known_user(system, user_id, users)
    return Share(
        grant_id=grant.grant_id,
        path=grant.path,
        user_id=user_id,
        username=None if user is None else user.name,
        group=None if user_id is not None else grant.group,
        permissions=grant.allow,
        deny=grant.deny,
        path_pattern=grant.path_pattern,
        created_at=grant.created_at,
        created_by=grant.created_by,
    )


def _shared_path(path: Path, grant: Grant, entry: Entry | None, flags: str) -> SharedPath:
    return SharedPath(
        path=format_path(path),
        entry_type=None if entry is None else int(entry.kind),
        effective_permissions=flags,
        permissions=grant.allow,
        group=grant.group,
        path_pattern=grant.path_pattern,
        shared_at=grant.created_at,
        shared_by=grant.created_by,
    )


def _bounded_paths(request: OldShares, most: int) -> list[Path]:
    receivers = len(request.users) + len(request.groups)
    if not receivers:
        raise InvalidInput("At least one user or group is needed.", field="users")
    paths = parsed_paths(request.paths, most)
    if len(paths) * receivers > most:
        raise PayloadTooLarge(
            f"That is {len(paths) * receivers} shares, and one request makes at most {most}.",
            field="paths",
            limit=most,
        )
    return paths


def _receivers(system: Version, request: OldShares, users: UserLookup | None) -> _Receivers:
    found: dict[str, KnownUser] = {}
    for number, name in enumerate(request.users):
        if number % _TURN == _TURN - 1:
            pause()
        user = _known_user(system, name, users)
        require_known(user, "user", name, "users")
        assert user is not None
        found[user.user_id] = user
    groups = dict.fromkeys(require_group(system, name, users) for name in request.groups)
    return _Receivers(list(found.values()), list(groups))


def _known_user(system: Version, name_or_id: str, users: UserLookup | None) -> KnownUser | None:
    """The user of the auth mode, or else of the database, who may have the same name as one of the mode."""
    known = None if users is None else users(name_or_id)
    user = (find_user(system, name_or_id) or find_user_by_name(system, name_or_id)) if known is None else None
    return known if user is None else KnownUser(user.user_id, user.username)


def _pairs(paths: Sequence[Path], receivers: _Receivers) -> Iterator[tuple[Path, str]]:
    """Yields each path with each group, and lets other requests run now and then."""
    groups = list(dict.fromkeys(receivers.all_groups))
    for number, pair in enumerate((path, group) for path in paths for group in groups):
        if number % _TURN == _TURN - 1:
            pause()
        yield pair


def _cursor(database_id: bytes, group: str, grant_id: str) -> str:
    sealed = seal(database_id, msgspec.json.encode((group, grant_id)), _PURPOSE)
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _place(database_id: bytes, cursor: str) -> tuple[str, str]:
    try:
        sealed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.json.decode(unseal(database_id, sealed, _PURPOSE) or b"", type=tuple[str, str])
    except (binascii.Error, ValueError, UnicodeError):
        raise InvalidInput("The cursor is not one of this listing.", field="after") from None
