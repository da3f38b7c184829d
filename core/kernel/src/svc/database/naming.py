"""Names of versions, as a person writes them, and their root hashes. Errors say what was looked for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import TYPE_CHECKING

import cbor2

from svc.errors import CorruptRecord, InvalidInput, NotFound, VersionCollected
from svc.hashing import HASH_SIZE, Hash, parse_hash

if TYPE_CHECKING:
    from svc.database.version_access import VersionAccess

__all__ = ["commit_state", "head_at", "named_version", "parse_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MAXIMUM_TIME = 253402300799999
_TIME = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[Tt ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:[Zz]|(?P<sign>[-+ ])(?P<offset_hour>\d{2}):?(?P<offset_minute>\d{2}))?)?",
    re.ASCII,
)


def parse_time(text: str) -> int:
    """Returns the Unix milliseconds of a time as people and programs write it.

    Args:
        text: ISO 8601 as in RFC 3339 (``2026-03-01T12:00:00.5+01:00``); without an offset it is UTC, without
            a time of day midnight. Or Unix milliseconds in digits. A space where the sign of the offset
            belongs counts as ``+``, because a query that was not percent-encoded says it so.

    Raises:
        InvalidInput: it is neither, or there is no such time.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        if len(text) > 15 or int(text) > _MAXIMUM_TIME:
            raise InvalidInput("A time in Unix milliseconds lies before the year 10000.", field="at")
        return int(text)
    match = _TIME.fullmatch(text)
    time_ms = None if match is None else _milliseconds(match)
    if time_ms is None:
        raise InvalidInput(
            "A time is written as in 2026-03-01T12:00:00Z, as a date, or in Unix milliseconds.", field="at"
        )
    return time_ms


def _milliseconds(match: re.Match[str]) -> int | None:
    part = match.groupdict(default="0")
    second = int(part["second"])
    minutes = int(part["offset_hour"]) * 60 + int(part["offset_minute"])
    if second > 60 or minutes >= 24 * 60 or int(part["offset_minute"]) > 59:
        return None
    try:
        moment = datetime.fromisoformat(part["date"]).replace(
            hour=int(part["hour"]), minute=int(part["minute"]), second=min(second, 59), tzinfo=UTC
        )
    except ValueError:
        return None
    # A leap second (60) is the beginning of the next one.
    result = (moment - _EPOCH) // _MILLISECOND + (1000 if second == 60 else 0)
    result += int(part["fraction"].ljust(3, "0")[:3])
    return result + minutes * 60_000 * (1 if part["sign"] == "-" else -1)


def head_at(database: VersionAccess, time_ms: int) -> Hash:
    """Returns HEAD's root as it was at a time, if it can be read; see ``Database.head_at``."""
    first, last = 1, database.head().sequence
    found: Hash | None = None
    while first <= last:  # Times never go back from one commit to the next.
        middle = (first + last) // 2
        made_ms, root = database.commit_state(middle)
        if made_ms <= time_ms:
            found = root
            first = middle + 1
        else:
            last = middle - 1
    if found is None:
        raise NotFound("The database holds no commit of that time or before.", at=time_ms)
    database.require_available(found)
    return found


def commit_state(payload: bytes) -> tuple[int, Hash]:
    """Returns the time and HEAD's root in a commit record's payload (docs/format/commit.md).

    What the commit did is not decoded: that takes long, and a search by time passes a dozen commits.
    """
    decoder = cbor2.CBORDecoder(BytesIO(payload[1 : 4 * HASH_SIZE + 1]))
    try:
        _version, _sequence, _parent, time_ms, root = (decoder.decode() for _ in range(5))
    except (cbor2.CBORDecodeError, ValueError) as error:
        raise CorruptRecord("A commit record is not of the expected form.") from error
    if not isinstance(time_ms, int) or time_ms < 0 or not isinstance(root, bytes) or len(root) != HASH_SIZE:
        raise CorruptRecord("A commit record is not of the expected form.")
    return time_ms, root


def named_version(database: VersionAccess, text: str) -> Hash:
    """Returns the root of the version that a text names; see ``Database.named_version``."""
    if text == "HEAD":
        return database.head().root
    root = parse_hash(text)
    if root is not None:
        database.require_version(root)
        return root
    kind, _, name = text.partition("/")
    tried = [("snapshots", text)]
    if kind in ("snapshots", "forks") and name:
        tried.insert(0, (kind, name))
    for kind, name in tried:
        try:
            if kind == "forks":
                return database.resolve_version(fork=name)
            return database.resolve_version(snapshot=name)
        except VersionCollected:
            raise
        except (NotFound, InvalidInput):  # The latter where no ref can have such a name.
            continue
    try:
        time_ms = parse_time(text)
    except InvalidInput:
        raise NotFound(
            "This names no version: it is no snapshot, no fork (forks/<name>), no hash of 64 hex digits, "
            "no time and not HEAD.",
            version=text[:200],
        ) from None
    return database.head_at(time_ms)
