"""What calls have in common: the limits, the state that is read, and where is written to."""

from __future__ import annotations

from typing import Any

import msgspec

from svc.errors import InvalidInput, NotFound
from svc.plugin import (
    Call,
    Database,
    Entry,
    Limits,
    Path,
    Transaction,
    Version,
    parse_time,
)
from svc_files.access import Reading
from svc_files.configuration import FilesConfiguration
from svc_files.items import listing_item
from svc_files.models import ReadQuery, WriteQuery
from svc_files.mounts import refuse_mounted
from svc_files.resolving import Place, follow

__all__ = [
    "MOST_OF_PATHS",
    "READ_POINTS",
    "RequestSettings",
    "Writing",
    "page_limit",
    "reading_of",
    "settings_of",
    "writing_of",
]

READ_POINTS = ("snapshot", "version", "fork", "at")
"""The parameters that say which state is read, in the order of their precedence."""

MOST_OF_PATHS = 8 * 1024 * 1024
"""Bytes of a JSON body that names many paths."""

_HEAD = "HEAD"
_DEFAULTS = FilesConfiguration()


class RequestSettings(FilesConfiguration, frozen=True, kw_only=True):
    """What limits a request: the settings of the plugin in the database, and the limits of the server.

    Attributes:
        maximum_body: bytes of one stored file.
        maximum_json: bytes of a JSON body, and of a stored document that a merge patch rewrites.
        maximum_batch: operations of a batch, files of a commit, paths of a copy, a download or a restore.
    """

    maximum_body: int
    maximum_json: int
    maximum_batch: int


_last: tuple[FilesConfiguration, Limits, RequestSettings] | None = None


def settings_of(call: Call) -> RequestSettings:
    """Returns the limits of a call."""
    global _last
    configuration, limits = call.configuration, call.limits
    last = _last
    # Both are the same objects for every request until somebody changes a setting.
    if last is not None and last[0] is configuration and last[1] is limits:
        return last[2]
    if not isinstance(configuration, FilesConfiguration):
        configuration = _DEFAULTS
    settings = RequestSettings(
        maximum_body=limits.file_body,
        maximum_json=limits.json_body,
        maximum_batch=limits.batch_operations,
        **msgspec.structs.asdict(configuration),
    )
    _last = (configuration, limits, settings)
    return settings


def page_limit(limit: int | None, settings: RequestSettings) -> int:
    """Returns how many items a page holds at most; InvalidInput where more are asked for than may be."""
    most = settings.listing_maximum
    if limit is None:
        return min(settings.listing_default, most)
    if limit > most:
        raise InvalidInput(f"The parameter limit is at most {most}.", field="limit", limit=most)
    return limit


def reading_of(call: Call, query: ReadQuery) -> Reading:
    """Returns the version that a call reads: ``snapshot``, ``version``, ``fork``, ``at``, else HEAD.

    Raises NotFound where it names none, and InvalidInput for what is no hash in hex, or no time.
    """
    snapshot, version, fork, at = query.snapshot, query.version, query.fork, query.at
    if snapshot is None and version is None and fork is None and at is None:
        return Reading(call, call.version)
    database = call.database
    time_ms = None if at is None else parse_time(at)
    root = database.resolve_version(snapshot=snapshot, version=version, fork=fork, at=time_ms)
    is_past = snapshot is not None or version is not None or fork is None
    return Reading(
        call,
        database.at(root),
        database.at() if is_past else None,
        fixed=snapshot is None and version is not None,
    )


class Writing(msgspec.Struct, frozen=True):
    """Where a request writes: HEAD, or a fork.

    ``version`` is the present state, to find links and to decide permissions by; the commit decides the rest.
    """

    context: Call
    ref: str
    version: Version

    @property
    def database(self) -> Database:
        """The database that is served."""
        return self.context.database

    @property
    def reading(self) -> Reading:
        """The present state, as the caller may see it."""
        return Reading(self.context, self.version)

    def follow(self, path: Path, *, final: bool = True) -> Place:
        """Returns where a path leads by the links that the caller may see; as ``resolving.follow``.

        Raises Forbidden also where that is in a mount, which can only be read.
        """
        place = follow(self.version, path, final=final, may_pass=self.reading.shows)
        refuse_mounted(self.context, place.path)
        return place

    def transaction(self, message: str | None = None) -> Transaction:
        """Begins a transaction in the caller's name."""
        return self.database.transaction(actor=self.context.actor, message=message, ref=self.ref)

    def item(self, path: Path, entry: Entry) -> dict[str, Any]:
        """Returns what the answer says of an entry that was written: no more than its caller may see."""
        return listing_item(path, entry, complete=self.reading.sees_below(path))

    def again(self) -> Writing:
        """Returns the same with the state as it is now."""
        return _writing(self.context, None if self.ref == _HEAD else self.ref.partition("/")[2])


def writing_of(call: Call, query: WriteQuery) -> Writing:
    """Returns where a call writes; NotFound where there is no such fork.

    Raises InvalidInput where it names a snapshot, a version or a time, which never change.
    """
    for name, value in (("snapshot", query.snapshot), ("version", query.version), ("at", query.at)):
        if value is not None:
            raise InvalidInput(f"A write takes fork, not {name}: what was never changes.", field=name)
    if query.fork is None:
        return Writing(call, _HEAD, call.version)
    return _writing(call, query.fork)


def _writing(context: Call, fork: str | None) -> Writing:
    database = context.database
    if fork is None:
        return Writing(context, _HEAD, database.at())
    if not fork:
        raise NotFound("There is no fork of this name.", name=fork)
    return Writing(context, f"forks/{fork}", database.at(database.resolve_version(fork=fork)))
