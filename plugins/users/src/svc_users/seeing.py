"""A directory as a user would see it: decided as for every request, and nobody is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from svc.errors import InvalidInput
from svc.plugin import (
    ROOT_USER_ID,
    EntryKind,
    Identity,
    Operation,
    Path,
    flags_of_mask,
    format_path,
    is_system_path,
    path_not_found,
    pause,
    permitted,
)
from svc_users.lookup import groups_of, named_user
from svc_users.models import SeenDirectory, SeenEntry
from svc_users.names import ROOT_NAME, name_key, user_id_of
from svc_users.rights_cache import RightsCache

if TYPE_CHECKING:
    from svc.plugin import Database, Version

__all__ = ["see_directory"]

_SHOWN = Operation.READ.bit | Operation.LIST.bit
_PAUSE_EVERY = 256

_caches: WeakKeyDictionary[Database, RightsCache] = WeakKeyDictionary()


def see_directory(
    database: Database,
    version: Version,
    path: Path,
    user: str,
    *,
    limit: int,
    after: str | None,
    scanned: int,
) -> SeenDirectory:
    """Returns what a listing of a directory shows to a user, who needs not be signed in.

    A directory that the user may not see looks as one that is missing does: ``is_shown`` is false.

    Args:
        database: the open database.
        version: what is listed.
        path: of the directory.
        user: id or name.
        limit: entries at most.
        after: name of the entry after which the part begins.
        scanned: entries that are looked at, at most.

    Raises:
        NotFound: there is no such user.
        InvalidInput: the user is root, from whom nothing is hidden.
    """
    if is_system_path(path):
        raise path_not_found(path)
    if user_id_of(user) == ROOT_USER_ID or name_key(user) == name_key(ROOT_NAME):
        raise InvalidInput("Root sees everything.", field="user")
    system = database.system()
    found = named_user(system, user)
    rights = _caches.setdefault(database, RightsCache(database)).of(groups_of(system, found), system)
    identity = Identity(found.user_id, found.username, rights=rights)
    entry = version.get(path)
    is_directory = not path or (entry is not None and entry.kind is EntryKind.DIRECTORY)
    is_shown = found.is_active and is_directory and _mask(identity, path, is_directory=True) != 0
    entries, next_cursor = (
        _entries(version, identity, path, limit, after, scanned) if is_shown else ([], None)
    )
    return SeenDirectory(
        path=format_path(path),
        user_id=found.user_id,
        username=found.username,
        is_active=found.is_active,
        is_shown=is_shown,
        permissions=flags_of_mask(permitted(identity, path, directory=True)),
        entries=entries,
        has_more=next_cursor is not None,
        next_cursor=next_cursor,
    )


def _entries(
    version: Version, identity: Identity, path: Path, limit: int, after: str | None, scanned: int
) -> tuple[list[SeenEntry], str | None]:
    shown: list[SeenEntry] = []
    last = None
    for looked_at, (name, entry) in enumerate(version.entries(path, after=after)):
        if looked_at >= scanned or len(shown) >= limit:
            return shown, last
        last = name
        is_directory = entry.kind is EntryKind.DIRECTORY
        mask = _mask(identity, (*path, name), is_directory=is_directory)
        if mask:
            # What a directory's entry says is made from everything below it, of which some may be hidden.
            size, updated_ms = (None, None) if is_directory else (entry.size, entry.updated_ms)
            shown.append(SeenEntry(name, entry.kind.name.lower(), flags_of_mask(mask), size, updated_ms))
        if looked_at % _PAUSE_EVERY == _PAUSE_EVERY - 1:
            pause()
    return shown, None


def _mask(identity: Identity, path: Path, *, is_directory: bool) -> int:
    """What the user may do to an entry; 0 where a listing does not show it."""
    if is_system_path(path):
        return 0
    mask = permitted(identity, path, directory=is_directory)
    return mask if mask & _SHOWN else 0
