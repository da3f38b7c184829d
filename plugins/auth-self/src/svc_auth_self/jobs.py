"""What the background process does: it makes new signing keys in time, and removes what has expired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from svc.errors import NotFound
from svc.plugin import BackgroundJob, Database, JobContext, Path, Version
from svc_auth_self.keys import DAY_MS, KEYS, KEYS_OF, KeyRecord
from svc_auth_self.records import decode, now_ms
from svc_auth_self.refresh import CHAINS, ENDED_CHAINS, LONGEST_TOKEN_MS, Chain, EndedChain
from svc_auth_self.settings import settings_of
from svc_auth_self.signing import remove_ended, rotate

__all__ = ["PruneJob", "SigningKeyJob", "prune_chains", "prune_ended_chains", "prune_keys"]

T = TypeVar("T", bound=msgspec.Struct)

KEPT_EXPIRED_MS = 30 * DAY_MS
"""So long a key that has expired is still listed, so that its owner can see why it is refused."""
_PAGE = 1_000


class SigningKeyJob(BackgroundJob):
    """Signs with a new key in time, and forgets the keys of which no token can be good any more."""

    name = "signing-keys"
    interval_s = 3_600.0

    def run(self, context: JobContext) -> None:
        """Rotates when the active key is old. A kill between two commits loses nothing."""
        settings = settings_of(context.database)
        oldest = now_ms() - settings.signing_key_days * DAY_MS
        if rotate(context.database, settings.jwt_expiry, older_than_ms=oldest) is not None:
            context.logger.info("Tokens are signed with a new key from now on.")
        remove_ended(context.database)


class PruneJob(BackgroundJob):
    """Removes expired keys and refresh tokens, in pages of one commit each."""

    name = "expired-tokens"
    interval_s = 3_600.0

    def run(self, context: JobContext) -> None:
        """Looks at every record once."""
        for prune in (prune_chains, prune_ended_chains, prune_keys):
            after: str | None = None
            while True:
                after = prune(context.database, after)
                if after is None:
                    break
                if context.wait(0.05):
                    return


def prune_chains(database: Database, after: str | None) -> str | None:
    """Removes the chains that have expired, in one page; returns where the next page begins."""
    system, now = database.system(), now_ms()
    page = list(_records(system, CHAINS, Chain, after))
    dead: list[Path] = [
        (CHAINS, name) for name, chain in page if chain is not None and chain.expires_at <= now
    ]
    _remove(database, dead, "remove refresh tokens that have expired")
    return page[-1][0] if len(page) == _PAGE else None


def prune_ended_chains(database: Database, after: str | None) -> str | None:
    """Forgets the chains that were ended so long ago that no access token of them is good, in one page."""
    system, latest = database.system(), now_ms() - LONGEST_TOKEN_MS
    page = list(_records(system, ENDED_CHAINS, EndedChain, after))
    dead: list[Path] = [
        (ENDED_CHAINS, name) for name, ended in page if ended is not None and ended.ended_at < latest
    ]
    _remove(database, dead, "forget sign-ins that were ended")
    return page[-1][0] if len(page) == _PAGE else None


def prune_keys(database: Database, after: str | None) -> str | None:
    """Removes the keys that expired a month ago, in one page; returns where the next page begins."""
    system, latest = database.system(), now_ms() - KEPT_EXPIRED_MS
    page = list(_records(system, KEYS, KeyRecord, after))
    dead: list[Path] = []
    for name, record in page:
        if record is None or record.expires_at > latest:
            continue
        dead.append((KEYS, name))
        if record.user_id is not None and system.get((KEYS_OF, record.user_id, name)) is not None:
            dead.append((KEYS_OF, record.user_id, name))
    _remove(database, dead, "remove keys that have expired")
    return page[-1][0] if len(page) == _PAGE else None


def _records(
    system: Version, directory: str, form: type[T], after: str | None
) -> Iterator[tuple[str, T | None]]:
    """Yields a page of records of a directory; None for one of another program's form."""
    if system.get((directory,)) is not None:
        for name, entry in islice(system.entries((directory,), after=after), _PAGE):
            yield name, decode(system, entry, form)


def _remove(database: Database, paths: Sequence[Path], message: str) -> None:
    if not paths:
        return
    try:
        with database.transaction(message=message) as transaction:
            for path in paths:
                transaction.delete_system(path)
    except NotFound:
        # Somebody removed one of them meanwhile; the next run takes the rest.
        return
