"""Granting, taking back, and the list of grants."""

from __future__ import annotations

from collections.abc import Iterator

from svc.errors import InvalidInput, NotFound
from svc.plugin import Database, Path, Version, attempt
from svc_users.changing import Page, page_of, present_ms
from svc_users.grants import (
    UserLookup,
    checked_grant,
    find_grant,
    put_grant,
    remove_grant,
    require_group,
)
from svc_users.lookup import names_in
from svc_users.names import name_key, path_key
from svc_users.records import GRANTS, GRANTS_BY_PATH, NO_FLAGS, Grant, grants_of_group

__all__ = ["grant", "list_grants", "require_grant", "ungrant"]

_KEY_DIGITS = 32


def grant(
    database: Database,
    path: Path,
    group: str,
    *,
    allow: str = NO_FLAGS,
    deny: str = NO_FLAGS,
    path_pattern: str | None = None,
    actor: str | None = None,
    users: UserLookup | None = None,
) -> tuple[Grant, bool]:
    """Makes a grant, or replaces the one of the same group, path and pattern; blocks for a commit.

    ``users`` knows users whom the database does not keep; see ``require_group``. Returns also whether it is
    new.

    Raises NotFound where the path belongs to the system, or there is no such group or user, and InvalidInput
    for malformed flags or pattern; ``field`` names them.
    """

    def once() -> tuple[Grant, bool]:
        system = database.system()
        made = checked_grant(
            path,
            require_group(system, group, users),
            allow=allow,
            deny=deny,
            path_pattern=path_pattern,
            created_at=present_ms(database),
            created_by=actor,
        )
        is_new = find_grant(system, made.grant_id) is None
        transaction = database.transaction(actor=actor, message=f"grant {made.path} to {made.group}")
        put_grant(transaction, system, made, users)
        transaction.commit()
        return made, is_new

    return attempt(once, "The group")


def ungrant(database: Database, grant_id: str, *, actor: str | None = None) -> Grant:
    """Takes a grant back and returns what it was; blocks for a commit."""
    found = require_grant(database.system(), grant_id)
    message = f"take back the grant of {found.path} to {found.group}"
    transaction = database.transaction(actor=actor, message=message)
    remove_grant(transaction, found)
    try:
        transaction.commit()
    except NotFound:
        raise _missing(grant_id) from None
    return found


def require_grant(system: Version, grant_id: str) -> Grant:
    """Returns the grant with an id."""
    found = find_grant(system, grant_id)
    if found is None:
        raise _missing(grant_id)
    return found


def list_grants(
    system: Version,
    *,
    path: Path | None = None,
    group: str | None = None,
    limit: int,
    after: str | None = None,
    scanned: int = 10_000,
) -> Page[Grant]:
    """Returns a page of the grants, in the order of their ids.

    At most ``scanned`` records are looked at; a page that ends there says that more follows.
    """
    key = None if group is None else name_key(group)
    if path is not None:
        ids = names_in(system, (*GRANTS_BY_PATH, path_key(path)), after=after)
    elif key is not None:
        rest = None if after is None else _parts(after)[1]
        ids = (f"{key}-{name}" for name in names_in(system, grants_of_group(key), after=rest))
    else:
        ids = _all_ids(system, after)

    def shown(grant_id: str) -> Grant | None:
        found = find_grant(system, grant_id)
        fits = found is not None and (key is None or name_key(found.group) == key)
        return found if fits else None

    return page_of(((grant_id, shown(grant_id)) for grant_id in ids), limit, scanned)


def _all_ids(system: Version, after: str | None) -> Iterator[str]:
    behind = None
    if after is not None:
        behind, rest = _parts(after)
        yield from (f"{behind}-{name}" for name in names_in(system, grants_of_group(behind), after=rest))
    for key in names_in(system, GRANTS, after=behind):
        yield from (f"{key}-{name}" for name in names_in(system, grants_of_group(key)))


def _parts(grant_id: str) -> tuple[str, str]:
    key, dash, rest = grant_id.partition("-")
    if not dash or len(key) != _KEY_DIGITS:
        raise InvalidInput("The cursor is not one that a page of grants gave.", field="after")
    return key, rest


def _missing(grant_id: str) -> NotFound:
    return NotFound("There is no grant with this id.", grant_id=grant_id[:100])
