"""What the routes read from a request in common: versions, forks, flags and numbers of the query."""

from __future__ import annotations

from typing import Any

import falcon
import msgspec

from svc.errors import InvalidInput, NotFound
from svc.plugin import (
    Database,
    Entry,
    Limits,
    Path,
    RequestContext,
    Transaction,
    Version,
    context_of,
    parse_time,
    query_text,
)
from svc_files.access import Reading
from svc_files.configuration import FilesConfiguration
from svc_files.items import listing_item
from svc_files.resolving import Place, follow

__all__ = [
    "READ_POINTS",
    "RequestSettings",
    "Writing",
    "reading_of",
    "settings_of",
    "writing_of",
]

READ_POINTS = ("snapshot", "version", "fork", "at")
"""The parameters that say which state is read, in the order of their precedence."""

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


def settings_of(req: falcon.Request) -> RequestSettings:
    """Returns the limits of a request."""
    global _last
    context = req.context
    configuration, limits = context.configuration, context.limits
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


def reading_of(req: falcon.Request) -> Reading:
    """Returns the version that a request reads: ``snapshot``, ``version``, ``fork``, ``at``, else HEAD.

    Raises NotFound where it names none, and InvalidInput for what is no hash in hex, or no time.
    """
    context = context_of(req)
    if not req.query_string:
        return Reading(context, context.version)
    database = context.database
    snapshot, version, fork, at = (query_text(req, name) for name in READ_POINTS)
    if snapshot is None and version is None and fork is None and at is None:
        return Reading(context, context.version)
    time_ms = None if at is None else parse_time(at)
    root = database.resolve_version(snapshot=snapshot, version=version, fork=fork, at=time_ms)
    is_past = snapshot is not None or version is not None or fork is None
    return Reading(
        context,
        database.at(root),
        database.at() if is_past else None,
        fixed=snapshot is None and version is not None,
    )


class Writing(msgspec.Struct, frozen=True):
    """Where a request writes: HEAD, or a fork.

    ``version`` is the present state, to find links and to decide permissions by; the commit decides the rest.
    """

    context: RequestContext
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
        """Returns where a path leads by the links that the caller may see; as ``resolving.follow``."""
        return follow(self.version, path, final=final, may_pass=self.reading.shows)

    def transaction(self, message: str | None = None) -> Transaction:
        """Begins a transaction in the caller's name."""
        return self.database.transaction(actor=self.context.actor, message=message, ref=self.ref)

    def item(self, path: Path, entry: Entry) -> dict[str, Any]:
        """Returns what the answer says of an entry that was written: no more than its caller may see."""
        return listing_item(path, entry, complete=self.reading.sees_below(path))

    def again(self) -> Writing:
        """Returns the same with the state as it is now."""
        return _writing(self.context, None if self.ref == _HEAD else self.ref.partition("/")[2])


def writing_of(req: falcon.Request) -> Writing:
    """Returns where a request writes; NotFound where there is no such fork.

    Raises InvalidInput where it names a snapshot, a version or a time, which never change.
    """
    context = context_of(req)
    if not req.query_string:
        return Writing(context, _HEAD, context.version)
    for name in ("snapshot", "version", "at"):
        if query_text(req, name) is not None:
            raise InvalidInput(f"A write takes fork, not {name}: what was never changes.", field=name)
    return _writing(context, query_text(req, "fork"))


def _writing(context: RequestContext, fork: str | None) -> Writing:
    database = context.database
    if fork is None:
        return Writing(context, _HEAD, database.at())
    if not fork:
        raise NotFound("There is no fork of this name.", name=fork)
    return Writing(context, f"forks/{fork}", database.at(database.resolve_version(fork=fork)))
