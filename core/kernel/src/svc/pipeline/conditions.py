"""Conditional requests (RFC 9110, section 13).

Entity tags here are opaque texts without quotes; a file's is the hex of its content hash, and strong. Times
are Unix milliseconds and compare by whole seconds, as HTTP dates do.
"""

from __future__ import annotations

import calendar
import email.utils
import functools
import re
import time
from datetime import UTC
from typing import NamedTuple

import falcon

from svc.database import Condition
from svc.errors import InvalidInput, PreconditionFailed

__all__ = [
    "ANY",
    "EntityTag",
    "conditions_of",
    "format_http_date",
    "if_range_holds",
    "not_modified",
    "parse_entity_tags",
    "parse_http_date",
    "quote_etag",
]

ANY = "*"
"""What ``If-Match: *`` and ``If-None-Match: *`` parse to: any present representation."""

_TAG = re.compile(r'[ \t]*(?:(W/)?"([\x21\x23-\x7e\x80-\xff]*)"|([^\s",*]+))[ \t]*(?:,|$)')


class EntityTag(NamedTuple):
    """One member of an entity-tag list: its opaque text and whether it is weak."""

    opaque: str
    weak: bool


def parse_entity_tags(field: str, value: str) -> tuple[EntityTag, ...] | str:
    """Returns the tags of an ``If-Match`` or ``If-None-Match`` field, or ``"*"``.

    Several field lines come joined by commas. A tag without quotes is taken as a strong one, because many
    programs send it so. What is no list of tags raises InvalidInput, which names the ``field``: to ignore it
    would turn a compare-and-swap into a plain overwrite.
    """
    if value.strip() == ANY:
        return ANY
    tags: list[EntityTag] = []
    position = 0
    while position < len(value):
        if value[position] in " \t,":
            position += 1
            continue
        match = _TAG.match(value, position)
        if match is None:
            raise InvalidInput(f"{field} is not a list of entity tags.", field=field)
        weak, quoted, bare = match.groups()
        tags.append(EntityTag(quoted if bare is None else bare, weak is not None))
        position = match.end()
    if not tags:
        raise InvalidInput(f"{field} holds no entity tag.", field=field)
    return tuple(tags)


def conditions_of(req: falcon.Request) -> Condition | None:
    """Returns what a PUT, PATCH or DELETE demands of the present state; None when nothing.

    The transaction checks it under the commit lock. ``If-Unmodified-Since`` counts only without
    ``If-Match`` (RFC 9110, 13.1.4); weak tags never satisfy ``If-Match``.

    Raises:
        InvalidInput: a malformed list of entity tags.
    """
    match_value = req.env.get("HTTP_IF_MATCH")
    none_value = req.env.get("HTTP_IF_NONE_MATCH")
    since_value = req.env.get("HTTP_IF_UNMODIFIED_SINCE")
    if match_value is None and none_value is None and since_value is None:
        return None
    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None
    since_ms: int | None = None
    if match_value is not None:
        tags = parse_entity_tags("If-Match", match_value)
        if_match = (ANY,) if isinstance(tags, str) else tuple(_quoted(tag) for tag in tags if not tag.weak)
    elif since_value is not None:
        seconds = parse_http_date(since_value)
        since_ms = None if seconds is None else seconds * 1000 + 999
    if none_value is not None:
        tags = parse_entity_tags("If-None-Match", none_value)
        if_none_match = (ANY,) if isinstance(tags, str) else tuple(_quoted(tag) for tag in tags)
    return Condition(if_match, if_none_match, since_ms)


def _quoted(tag: EntityTag) -> str:
    # In a Condition "*" means anything; the entity tag '"*"' is just a tag that nothing has.
    return '"*"' if tag.opaque == ANY else tag.opaque


def not_modified(req: falcon.Request, etag: str | None, updated_ms: int | None) -> bool:
    """Decides a read of something that is there: whether the answer is 304.

    The steps are those of RFC 9110, 13.2.2: ``If-Match``, else ``If-Unmodified-Since``; then
    ``If-None-Match``, else ``If-Modified-Since``.

    Args:
        req: a GET or HEAD request.
        etag: the opaque tag of the selected representation (strong), None when it has none.
        updated_ms: its last modification, None when unknown.

    Raises:
        PreconditionFailed: ``If-Match`` or ``If-Unmodified-Since`` does not hold.
        InvalidInput: a malformed list of entity tags.
    """
    env = req.env
    if "HTTP_IF_MATCH" in env:
        tags = parse_entity_tags("If-Match", env["HTTP_IF_MATCH"])
        if not isinstance(tags, str) and not any(tag.opaque == etag and not tag.weak for tag in tags):
            raise PreconditionFailed("None of the entity tags in If-Match is the present one.")
    elif "HTTP_IF_UNMODIFIED_SINCE" in env and updated_ms is not None:
        seconds = parse_http_date(env["HTTP_IF_UNMODIFIED_SINCE"])
        if seconds is not None and updated_ms // 1000 > seconds:
            raise PreconditionFailed("It was modified after the time in If-Unmodified-Since.")
    if "HTTP_IF_NONE_MATCH" in env:
        tags = parse_entity_tags("If-None-Match", env["HTTP_IF_NONE_MATCH"])
        return isinstance(tags, str) or any(tag.opaque == etag for tag in tags)
    if "HTTP_IF_MODIFIED_SINCE" in env and updated_ms is not None:
        seconds = parse_http_date(env["HTTP_IF_MODIFIED_SINCE"])
        # Not what is merely later: the date goes back where an older content comes back.
        return seconds is not None and updated_ms // 1000 == seconds
    return False


def if_range_holds(req: falcon.Request, etag: str | None, updated_ms: int | None) -> bool:
    """Whether ``If-Range`` lets the ``Range`` field count (RFC 9110, 13.1.5).

    A tag compares strongly. A date must equal the last modification, and is only a strong validator when that
    lies at least a second back: within the second, the content may have changed twice.
    """
    value = req.env.get("HTTP_IF_RANGE")
    if value is None:
        return True
    value = value.strip()
    if value.startswith(('"', "W/")):
        try:
            tags = parse_entity_tags("If-Range", value)
        except InvalidInput:
            return False
        return len(tags) == 1 and isinstance(tags, tuple) and tags[0] == EntityTag(etag or "", False)
    seconds = parse_http_date(value)
    if seconds is None:
        return etag is not None and value == etag
    return updated_ms is not None and updated_ms // 1000 == seconds and time.time() >= seconds + 2


def parse_http_date(value: str) -> int | None:
    """Returns the Unix seconds of an HTTP date in any of its three forms; None when it is none."""
    try:
        parsed = email.utils.parsedate_to_datetime(value)
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return calendar.timegm(parsed.astimezone(UTC).timetuple())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def format_http_date(time_ms: int) -> str:
    """Returns the IMF-fixdate of a time in Unix milliseconds, cut to the second.

    Times outside the years 1 to 9999 are clamped.
    """
    seconds = time_ms // 1000
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        seconds = _FIRST_SECOND if seconds < _FIRST_SECOND else _LAST_SECOND
    return _format_seconds(seconds)


@functools.lru_cache(maxsize=4096)
def _format_seconds(seconds: int) -> str:
    """Cached: a file that is asked for often has the same date each time."""
    year, month, day, hour, minute, second, weekday = time.gmtime(seconds)[:7]
    clock = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{_DAYS[weekday]}, {day:02d} {_MONTHS[month - 1]} {year:04d} {clock} GMT"


def quote_etag(opaque: str) -> str:
    """Returns the strong entity tag of an opaque text, quoted."""
    return f'"{opaque}"'


_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
