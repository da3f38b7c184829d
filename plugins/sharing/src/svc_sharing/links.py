"""Links: share keys that open their paths for whoever has them, and the records that list them.

The key is what counts: a link whose key was revoked elsewhere or has expired is not listed any more, and its
records go with the next run of the job that prunes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from svc.errors import InvalidInput, NotFound
from svc.plugin import (
    Database,
    EntryKind,
    Path,
    Transaction,
    Version,
    format_path,
    hash_content,
    parse_path,
    pause,
)
from svc_auth_self.api import DAY_MS, LONGEST_KEY_DAYS, create_key, find_key, revoke_key
from svc_sharing.addresses import link_url
from svc_sharing.configuration import SharingConfiguration
from svc_sharing.models import NewLink, NewShareLink, ShareLink
from svc_sharing.retrying import commit_decided
from svc_sharing.shared_paths import checked_permissions, parsed_paths, present_paths, rule_of_path

__all__ = [
    "LINK_KIND",
    "LinkRecord",
    "create_link",
    "list_links",
    "prune_links",
    "revoke_link",
]

LINK_KIND = "share"
LINKS = "share-links"
_BY_ID = (LINKS, "by-id")
_BY_PATH = (LINKS, "by-path")
_KEY_DIGITS = 32
_PRUNED_AT_ONCE = 200
_TURN = 32
_LABEL = 200


class LinkRecord(ShareLink, frozen=True, kw_only=True):
    """What is stored of a link, at ``/share-links/by-id/<key_id>`` of the system tree. It holds no secret."""


def create_link(
    database: Database, wanted: NewLink, settings: SharingConfiguration, *, actor: str | None
) -> NewShareLink:
    """Makes a share key and the link that holds it, in one commit; blocks.

    Raises NotFound where nothing stands at a path, PayloadTooLarge for too many paths, and InvalidInput also
    for a path that cannot be said exactly by the rules of a key.
    """
    flags = checked_permissions(wanted.permissions)
    days = settings.link_days if wanted.expires_in_days is None else wanted.expires_in_days
    base_url = settings.base_url if wanted.base_url is None else wanted.base_url
    if not 1 <= days <= LONGEST_KEY_DAYS:
        raise InvalidInput(
            f"expires_in_days is 1 to {LONGEST_KEY_DAYS}.", field="expires_in_days", limit=LONGEST_KEY_DAYS
        )
    link_url(base_url, "")  # Refuses a base that makes no URL.
    found = present_paths(database.at(), parsed_paths(wanted.paths, settings.link_paths))
    rules = [rule_of_path(path, is_directory, flags) for path, is_directory in found]
    texts = [format_path(path) for path, _ in found]
    expires_at = time.time_ns() // 1_000_000 + days * DAY_MS
    with database.transaction(actor=actor, message="make a link") as transaction:
        record, key = create_key(
            database,
            transaction,
            user_id=None,
            label=f"link to {texts[0]}"[:_LABEL],
            expires_at=expires_at,
            rules=rules,
            created_by=actor,
            kind=LINK_KIND,
        )
        link = LinkRecord(
            key_id=record.key_id,
            paths=texts,
            permissions=flags,
            created_at=record.created_at,
            created_by=actor,
            expires_at=expires_at,
        )
        transaction.put_system((*_BY_ID, link.key_id), msgspec.json.encode(link))
        for path, _ in found:
            transaction.put_system((*_BY_PATH, _path_key(path), link.key_id), b"")
    return NewShareLink(
        url=link_url(base_url, key),
        token=key,
        key_id=link.key_id,
        permissions=flags,
        expires_at=expires_at,
        paths=texts,
    )


def list_links(
    system: Version, path: Path | None, *, limit: int, after: str | None, now_ms: int | None = None
) -> tuple[list[LinkRecord], str | None]:
    """Returns a page of the links that work, oldest first, and the cursor behind it."""
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    directory = _BY_ID if path is None else (*_BY_PATH, _path_key(path))
    found: list[LinkRecord] = []
    for number, key_id in enumerate(_names(system, directory, after)):
        if number % _TURN == _TURN - 1:
            pause()
        record = _record(system, key_id)
        if record is not None and _works(system, key_id, now_ms):
            found.append(record)
        if number + 1 == limit:
            return found, key_id
    return found, None


def revoke_link(database: Database, key_id: str, *, actor: str | None) -> LinkRecord:
    """Ends a link, and with it what was signed in by it; blocks."""

    def decide(transaction: Transaction, system: Version) -> LinkRecord:
        record = _record(system, key_id)
        if record is None:
            raise NotFound("There is no link with this id.", key_id=key_id[:100])
        if find_key(system, key_id) is not None:
            revoke_key(database, transaction, key_id)
        _remove(transaction, system, record)
        return record

    return commit_decided(database, decide, actor=actor, message="end a link")


def prune_links(database: Database, after: str | None, now_ms: int | None = None) -> tuple[int, str | None]:
    """Removes the records of links that do not work any more, of one page; blocks for a commit.

    Returns how many were removed, and where the next page begins; None behind the last.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    last: str | None = None

    def decide(transaction: Transaction, system: Version) -> int:
        nonlocal last
        removed, last = 0, None
        for number, key_id in enumerate(_names(system, _BY_ID, after)):
            record = _record(system, key_id)
            if record is not None and not _works(system, key_id, now_ms):
                _remove(transaction, system, record)
                removed += 1
            if number + 1 == _PRUNED_AT_ONCE:
                last = key_id
                break
        return removed

    removed = commit_decided(database, decide, actor=None, message="remove records of links that ended")
    return removed, last


def _works(system: Version, key_id: str, now_ms: int) -> bool:
    key = find_key(system, key_id)
    return key is not None and not key.is_expired(now_ms)


def _record(system: Version, key_id: str) -> LinkRecord | None:
    if not key_id or "/" in key_id:
        return None
    entry = system.get((*_BY_ID, key_id))
    if entry is None or entry.kind is not EntryKind.FILE:
        return None
    try:
        return msgspec.json.decode(system.read_all(entry), type=LinkRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _remove(transaction: Transaction, system: Version, record: LinkRecord) -> None:
    transaction.delete_system((*_BY_ID, record.key_id))
    for text in record.paths:
        hint = (*_BY_PATH, _path_key(parse_path(text)), record.key_id)
        if system.get(hint) is not None:
            transaction.delete_system(hint)


def _names(system: Version, directory: Path, after: str | None) -> Iterator[str]:
    if system.get(directory) is None:
        return
    for name, _ in system.entries(directory, after=after):
        yield name


def _path_key(path: Path) -> str:
    return hash_content(format_path(path).encode()).hex()[:_KEY_DIGITS]
