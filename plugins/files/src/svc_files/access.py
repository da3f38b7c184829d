"""Who may see and change what: the permission questions that the file routes ask, asked in one place.

The pipeline's permission function decides; this module knows which operation on which path a request
comes down to once links are resolved and the present state is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec

from svc.database import Condition, Version, pause
from svc.errors import Conflict, Forbidden, PayloadTooLarge, PreconditionFailed
from svc.paths import Path, format_path, is_system_path, parse_path
from svc.pipeline import RequestContext, effective_permissions, hides_denials, is_unrestricted_root
from svc.plugins import Operation
from svc.tree import Entry, EntryKind
from svc_files.resolving import Place, find, missing

__all__ = [
    "Reading",
    "authorize_below",
    "authorize_put",
    "body_path",
    "guarded",
    "require_count",
]

ANY_STATE = ("*",)
# To read a member of an enum from its class takes ten times as long as to read a name of the module.
_DIRECTORY = EntryKind.DIRECTORY
_LIST, _READ = Operation.LIST, Operation.READ
_PAUSE_EVERY = 256


def body_path(text: str) -> Path:
    """Returns the path that a body or a query names.

    Raises:
        InvalidPath: it breaks the path rules.
        NotFound: it lies in the system namespace.
    """
    path = parse_path(text)
    if is_system_path(path):
        raise missing(path)
    return path


def require_count(count: int, maximum: int, field: str) -> None:
    """Raises PayloadTooLarge when a request names more things than a limit allows."""
    if count > maximum:
        raise PayloadTooLarge(f"At most {maximum} {field} are taken at once.", field=field, limit=maximum)


class Reading(msgspec.Struct, frozen=True):
    """What one caller reads: a version, seen through the caller's permissions.

    Attributes:
        context: the request's context.
        version: the version that is read.
        head: HEAD, when an older version is read: what is deleted there needs the permission ``d``.
        fixed: whether the version was named by its hash, so that what the request reads never changes.
    """

    context: RequestContext
    version: Version
    head: Version | None = None
    fixed: bool = False

    @property
    def sees_all(self) -> bool:
        """Whether nothing is hidden from the caller, so that the tree's own counts are theirs."""
        return is_unrestricted_root(self.context.identity)

    def find(self, path: Path, *operations: Operation, final: bool = True) -> tuple[Path, Entry]:
        """Returns where a path leads and what stands there, if the caller may have it.

        Args:
            path: the path that was asked for.
            operations: what it is wanted for; none means ``READ`` of a file or link, ``LIST`` of a directory.
            final: whether a link at its end is followed.

        Raises:
            NotFound: nothing is there, or nothing that the caller may know of.
            Forbidden: the caller may not read it.
        """
        try:
            found, entry = find(self.version, path, final=final)
        except Exception:
            # Whether a link is broken or runs in a circle is for those to know who may read it.
            self.context.authorize(Operation.READ, path)
            raise
        if is_unrestricted_root(self.context.identity):
            return found, entry  # nothing of the system is ever found
        needed = operations or (_reading_operation(entry),)
        for operation in needed:
            self.context.authorize(operation, path)
            if found != path:
                self.context.authorize(operation, found)
        if self._is_deleted(found):
            self.context.authorize(Operation.DELETE, found)
        return found, entry

    def may(self, operation: Operation, path: Path) -> bool:
        """Whether the caller may do this to a path of this version."""
        if is_system_path(path):
            return False
        if self.sees_all:
            return True
        context = self.context
        return context.may(operation, path) and (
            not self._is_deleted(path) or context.may(Operation.DELETE, path)
        )

    def shows(self, path: Path) -> bool:
        """Whether a listing shows the path to the caller."""
        return self.may(Operation.LIST, path) or self.may(Operation.READ, path)

    def permissions(self, path: Path) -> str | None:
        """The caller's flags on a path, None for a caller who may do everything."""
        return None if self.sees_all else effective_permissions(self.context.identity, path)

    def _is_deleted(self, path: Path) -> bool:
        return self.head is not None and self.head.get(path) is None


def authorize_put(
    context: RequestContext, place: Place, asked: Path, condition: Condition | None
) -> Condition | None:
    """Makes sure that the caller may store something at a place, and returns the condition to do it under.

    A caller who may create and not update must not overwrite what appears in the meantime, nor the
    reverse: the condition that comes back forbids it in the commit itself.

    Raises:
        NotFound: the caller may not know of the path.
        Forbidden: the caller may not do it.
    """
    operation = Operation.CREATE if place.entry is None else Operation.UPDATE
    context.authorize(operation, place.path)
    if asked != place.path:
        context.authorize(operation, asked)
    if is_unrestricted_root(context.identity):
        return condition
    other = Operation.UPDATE if place.entry is None else Operation.CREATE
    if context.may(other, place.path):
        return condition
    condition = condition or Condition()
    if operation is Operation.CREATE:
        return replace(condition, if_none_match=ANY_STATE)
    return replace(condition, if_match=condition.if_match or ANY_STATE)


def authorize_below(
    context: RequestContext,
    version: Version,
    path: Path,
    entry: Entry,
    operation: Operation,
    destination: Path | None = None,
) -> Condition | None:
    """Makes sure that the caller may do something to everything at and below a path.

    Args:
        context: the request's context.
        version: the state that the decision looks at.
        path: the file, link or directory.
        entry: what stands there in ``version``.
        operation: what is needed on the path and on everything below it.
        destination: where it goes, when each path there needs ``CREATE`` too.

    Returns:
        The condition under which the decision holds: that the directory is still the same.

    Raises:
        NotFound: the caller may not do it at the path itself, or below it and must not know.
        Forbidden: the caller may not do it everywhere below.
    """
    context.authorize(operation, path)
    if destination is not None:
        context.authorize(Operation.CREATE, destination)
    if entry.kind is not EntryKind.DIRECTORY or is_unrestricted_root(context.identity):
        return None
    for below in _paths_below(version, path):
        if not context.may(operation, below) or (
            destination is not None and not context.may(Operation.CREATE, destination + below[len(path) :])
        ):
            if hides_denials(context.identity):
                raise missing(path)
            raise Forbidden("You may not do this to everything below the directory.", path=format_path(path))
    return Condition(if_match=(entry.hash.hex(),))


@contextmanager
def guarded(guard: Condition | None) -> Iterator[None]:
    """Around a commit: a guard of ``authorize_below`` that fails is a conflict, not a failed condition.

    Raises:
        Conflict: the directory has changed since the permissions below it were looked at.
    """
    try:
        yield
    except PreconditionFailed as error:
        if guard is None:
            raise
        raise Conflict("The directory changed meanwhile; try again.", **error.details) from None


def _paths_below(version: Version, path: Path) -> Iterator[Path]:
    for number, (below, _) in enumerate(version.walk(path)):
        if number % _PAUSE_EVERY == 0:
            pause()
        yield below


def _reading_operation(entry: Entry) -> Operation:
    return _LIST if entry.kind is _DIRECTORY else _READ
