"""What the routes read from a request in common: versions, forks, flags and numbers of the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import falcon

from svc.database import Database, Transaction, Version, parse_time
from svc.errors import InvalidInput, NotFound
from svc.pipeline import RequestContext
from svc_files.access import Reading
from svc_files.configuration import FilesConfiguration

__all__ = [
    "READ_POINTS",
    "Writing",
    "context_of",
    "flag",
    "number",
    "reading_of",
    "settings_of",
    "text",
    "writing_of",
]

READ_POINTS = ("snapshot", "version", "fork", "at")
"""The parameters that say which state is read, in the order of their precedence."""

_TRUE = frozenset({"true", "1", "yes", "on", ""})
_FALSE = frozenset({"false", "0", "no", "off"})
_HEAD = "HEAD"


def settings_of(req: falcon.Request) -> FilesConfiguration:
    """Returns the plugin's settings in the database that is served."""
    configuration = req.context.configuration
    return configuration if isinstance(configuration, FilesConfiguration) else FilesConfiguration()


def text(req: falcon.Request, name: str) -> str | None:
    """Returns a parameter of the query; the last one when it is repeated, None when it is absent."""
    value = req.params.get(name)
    if isinstance(value, list):
        value = value[-1] if value else None
    return value


def context_of(req: falcon.Request) -> RequestContext:
    """Returns what the pipeline knows of the request."""
    return cast(RequestContext, req.context)


def flag(req: falcon.Request, name: str) -> bool:
    """Returns a boolean parameter of the query; absent means false, a bare name true.

    Raises:
        InvalidInput: it is neither ``true`` nor ``false``.
    """
    if not req.query_string:
        return False
    value = text(req, name)
    if value is None or value.lower() in _FALSE:
        return False
    if value.lower() in _TRUE:
        return True
    raise InvalidInput(f"The parameter {name} is true or false.", field=name)


def number(
    req: falcon.Request, name: str, default: int | None, *, minimum: int = 0, maximum: int | None = None
) -> int | None:
    """Returns an integer parameter of the query, or ``default`` when it is absent.

    Raises:
        InvalidInput: it is no integer, or out of bounds; ``limit`` states the bound.
    """
    value = text(req, name)
    if value is None:
        return default
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise InvalidInput(f"The parameter {name} is an integer.", field=name)
    result = int(value)
    if result < minimum:
        raise InvalidInput(f"The parameter {name} is at least {minimum}.", field=name, limit=minimum)
    if maximum is not None and result > maximum:
        raise InvalidInput(f"The parameter {name} is at most {maximum}.", field=name, limit=maximum)
    return result


def reading_of(req: falcon.Request) -> Reading:
    """Returns the version that a request reads: ``snapshot``, ``version``, ``fork``, ``at``, else HEAD.

    Raises:
        NotFound: there is no such snapshot, version or fork, or no commit of that time.
        InvalidInput: the version is not a hash in hex, or the time none.
    """
    context = context_of(req)
    database = context.database
    if not req.query_string:
        return Reading(context, database.at())
    snapshot, version, fork, at = (text(req, name) for name in READ_POINTS)
    if snapshot is None and version is None and fork is None and at is None:
        return Reading(context, database.at())
    time_ms = None if at is None else parse_time(at)
    root = database.resolve_version(snapshot=snapshot, version=version, fork=fork, at=time_ms)
    is_past = snapshot is not None or version is not None or fork is None
    return Reading(
        context,
        database.at(root),
        database.at() if is_past else None,
        fixed=snapshot is None and version is not None,
    )


@dataclass(frozen=True, slots=True)
class Writing:
    """Where a request writes: HEAD, or a fork.

    Attributes:
        context: the request's context.
        ref: name of the ref.
        version: its present state, to find links and to decide permissions by; the commit decides the rest.
    """

    context: RequestContext
    ref: str
    version: Version

    @property
    def database(self) -> Database:
        """The database that is served."""
        return self.context.database

    def transaction(self, message: str | None = None) -> Transaction:
        """Begins a transaction in the caller's name."""
        return self.database.transaction(actor=self.context.actor, message=message, ref=self.ref)

    def again(self) -> Writing:
        """Returns the same with the state as it is now."""
        return _writing(self.context, None if self.ref == _HEAD else self.ref.partition("/")[2])


def writing_of(req: falcon.Request) -> Writing:
    """Returns where a request writes.

    Raises:
        InvalidInput: it names a snapshot, a version or a time, which never change.
        NotFound: there is no such fork.
    """
    for name in ("snapshot", "version", "at"):
        if text(req, name) is not None:
            raise InvalidInput(f"A write takes fork, not {name}: what was never changes.", field=name)
    return _writing(context_of(req), text(req, "fork"))


def _writing(context: RequestContext, fork: str | None) -> Writing:
    database = context.database
    if fork is None:
        return Writing(context, _HEAD, database.at())
    if not fork:
        raise NotFound("There is no fork of this name.", name=fork)
    return Writing(context, f"forks/{fork}", database.at(database.resolve_version(fork=fork)))
