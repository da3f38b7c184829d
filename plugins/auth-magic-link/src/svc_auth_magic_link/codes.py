"""Codes: what a link holds. A code is a secret of 256 bits that signs one user in, once.

The database keeps the hash of a code alone, as the name of its record; the record goes when the code is used,
and of many who use it at once one takes the record away.
"""

from __future__ import annotations

import re
import secrets
import time
from itertools import islice

import msgspec
from blake3 import blake3

from svc.errors import NotFound
from svc.plugin import BackgroundJob, Database, EntryKind, JobContext, Path, Version
from svc_auth_magic_link.configuration import CODE_MINUTES

__all__ = ["CodeRecord", "PruningJob", "create_code", "drop_code", "is_code", "prune_codes", "use_code"]

CODES: Path = ("magic-links",)

_CONTEXT = "svc auth.magic-link code, 2026"
_FORM = re.compile(r"[A-Za-z0-9_-]{43}")
_PAGE = 500
_PRUNE_SECONDS = 300.0


class CodeRecord(msgspec.Struct, frozen=True):
    """What is kept of a code.

    Attributes:
        user_id: whom it signs in.
        address: where it was sent: the name that the user has then.
        created_at: Unix milliseconds.
        expires_at: Unix milliseconds.
    """

    user_id: str
    address: str
    created_at: int
    expires_at: int


def is_code(text: str) -> bool:
    """Whether a text has the form of a code."""
    return _FORM.fullmatch(text) is not None


def create_code(database: Database, user_id: str, address: str, now_ms: int | None = None) -> str:
    """Returns a new code of a user, which is sent to an address; blocks for a commit."""
    code = secrets.token_urlsafe(32)
    now_ms = _now_ms() if now_ms is None else now_ms
    record = CodeRecord(user_id, address, now_ms, now_ms + CODE_MINUTES * 60_000)
    with database.transaction(message="Make a link that signs in") as transaction:
        transaction.put_system(_path(code), msgspec.json.encode(record))
    return code


def use_code(database: Database, code: str, now_ms: int | None = None) -> CodeRecord | None:
    """Uses a code up and returns its record; None when it is no code, is used, or has expired.

    Of several calls at once, in any process, one gets the record. Blocks for a commit where the code exists.
    """
    if not is_code(code):
        return None
    record = _read(database.system(), _path(code))
    if record is None or record.expires_at <= (_now_ms() if now_ms is None else now_ms):
        return None
    return record if drop_code(database, code) else None


def drop_code(database: Database, code: str) -> bool:
    """Takes a code out of the database; False when it was not there. Blocks for a commit."""
    try:
        with database.transaction(message="Use a link that signs in") as transaction:
            # It fails in the commit where somebody was faster: that is the compare-and-swap.
            transaction.delete_system(_path(code))
    except NotFound:
        return False
    return True


def prune_codes(database: Database, now_ms: int | None = None) -> int:
    """Removes the codes that have expired, a page in each commit, and returns how many there were. Blocks."""
    now_ms = _now_ms() if now_ms is None else now_ms
    removed = 0
    after: str | None = None
    while True:
        names, expired = _page(database.system(), after, now_ms)
        removed += _remove(database, expired)
        if len(names) < _PAGE:
            return removed
        after = names[-1]


class PruningJob(BackgroundJob):
    """Removes codes that nobody has used in time."""

    name = "magic-link-codes"
    interval_s = _PRUNE_SECONDS

    def run(self, context: JobContext) -> None:
        """Removes them; one that is killed goes on at its next run."""
        removed = prune_codes(context.database)
        if removed:
            context.logger.info("removed %d codes that had expired", removed)


def _page(system: Version, after: str | None, now_ms: int) -> tuple[list[str], list[str]]:
    """The next names of records, and those of them whose code has expired or that can't be read."""
    entry = system.get(CODES)
    if entry is None or entry.kind is not EntryKind.DIRECTORY:
        return [], []
    names = [name for name, _ in islice(system.entries(CODES, after=after), _PAGE)]
    records = ((name, _read(system, (*CODES, name))) for name in names)
    return names, [name for name, record in records if record is None or record.expires_at <= now_ms]


def _remove(database: Database, names: list[str]) -> int:
    """Removes records in one commit, or one by one where one of them was used meanwhile."""
    try:
        if names:
            with database.transaction(message="Remove links that have expired") as transaction:
                for name in names:
                    transaction.delete_system((*CODES, name))
    except NotFound:
        if len(names) == 1:
            return 0
        return sum(_remove(database, [name]) for name in names)
    return len(names)


def _read(system: Version, path: Path) -> CodeRecord | None:
    entry = system.get(path)
    if entry is None or entry.kind is not EntryKind.FILE:
        return None
    try:
        return msgspec.json.decode(system.read_all(entry), type=CodeRecord)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _path(code: str) -> Path:
    return (*CODES, blake3(code.encode(), derive_key_context=_CONTEXT).hexdigest())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
