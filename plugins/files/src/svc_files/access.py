"""Who may see and change what: the permission questions that the file routes ask, asked in one place.

The pipeline's permission function decides; this module knows which operation on which path a request
comes down to once links are resolved and the present state is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from svc.errors import Conflict, Forbidden, InvalidPath, PayloadTooLarge, PreconditionFailed
from svc.plugin import (
    Call,
    Condition,
    Entry,
    EntryKind,
    Hash,
    Hold,
    Operation,
    Path,
    Version,
    flags_of_mask,
    format_path,
    is_system_path,
    parse_path,
    pause,
    permitted,
)
from svc_files.configuration import FilesConfiguration
from svc_files.resolving import Place, find, follow, missing

__all__ = [
    "MOVED",
    "PutPermission",
    "Reading",
    "authorize_below",
    "authorize_ends",
    "authorize_put",
    "body_path",
    "commit_condition",
    "file_path",
    "guarded",
    "looks",
    "require_count",
    "require_file_path",
    "require_size",
    "takes_directories",
]

ANY_STATE = ("*",)
# To read a member of an enum from its class takes ten times as long as to read a name of the module.
_DIRECTORY, _FILE = EntryKind.DIRECTORY, EntryKind.FILE
_LIST, _READ = Operation.LIST, Operation.READ
_CREATE, _UPDATE = Operation.CREATE, Operation.UPDATE
_DELETE = Operation.DELETE.bit
MOVED = (Operation.READ, Operation.DELETE)
"""What a move needs of everything that it moves: behind it, the caller may be able to read it."""
_SHOWN = _LIST.bit | _READ.bit
_EVERYTHING = sum(operation.bit for operation in Operation)
_PAUSE_EVERY = 256
_LEVELS_PER_LOOK = 64


def body_path(text: str) -> Path:
    """Returns the path that a body or a query names; NotFound where it lies in the system namespace."""
    path = parse_path(text)
    if is_system_path(path):
        raise missing(path)
    return path


def file_path(text: str) -> Path:
    """Returns the path of a file that is to be stored, as ``body_path``; InvalidPath for a directory's."""
    path = body_path(text)
    require_file_path(text, path)
    return path


def require_file_path(text: str, path: Path) -> None:
    """Raises InvalidPath where the text of a path ends like a directory's, and a file is to be stored there.

    Who wrote the slash meant the directory; the last name would become a file, and stand in its way.
    """
    if path and text.rpartition("/")[2] in ("", "."):
        raise InvalidPath(
            "A path that ends with a slash names a directory: leave the slash out to store a file, or make "
            'the directory with POST /files/mkdir and {"path": "/..."}.',
            path=format_path(path),
        )


def looks(path: Path) -> int:
    """What looking at an entry counts: 1, and more where it lies so deep that its path is what costs."""
    return 1 + len(path) // _LEVELS_PER_LOOK


def require_count(count: int, maximum: int, field: str) -> None:
    """Raises PayloadTooLarge when a request names more things than a limit allows."""
    if count > maximum:
        raise PayloadTooLarge(f"At most {maximum} {field} are taken at once.", field=field, limit=maximum)


def require_size(size: int, maximum: int) -> None:
    """Raises PayloadTooLarge when a file would have more bytes than a limit allows."""
    if size > maximum:
        raise PayloadTooLarge(f"A file has at most {maximum} bytes.", limit=maximum)


class Reading(msgspec.Struct, frozen=True):
    """What one caller reads: a version, seen through the caller's permissions.

    ``head`` is HEAD when an older version is read: what is deleted there needs the permission ``d``.
    ``fixed`` says that the version was named by its hash, so that what the request reads never changes.
    """

    context: Call
    version: Version
    head: Version | None = None
    fixed: bool = False

    @property
    def shown_root(self) -> Hash:
        """The version that the answer names."""
        return self.version.root

    def hold(self) -> Hold:
        """Keeps the version from being collected until the hold is released: for an answer that is streamed.

        Raises VersionCollected where it was collected since the request began.
        """
        return self.context.database.hold_version(self.version.root)

    @property
    def sees_all(self) -> bool:
        """Whether nothing at all is hidden from the caller."""
        return self.context.identity.is_unrestricted_root

    def sees_below(self, path: Path) -> bool:
        """Whether nothing at or below a path is hidden from the caller, whatever is there.

        Only then may they have what a directory's entry says: its hash, its sizes, counts and times are made
        from everything below it. Cheap; what was granted decides, not what is there.
        """
        if self.sees_all:
            return True
        may_below = self.context.may_below
        if not (may_below(_LIST, path) or may_below(_READ, path)):
            return False
        is_past = self.head is not None and self.head.root != self.version.root
        return not is_past or may_below(Operation.DELETE, path)

    def find(self, path: Path, *operations: Operation, final: bool = True) -> tuple[Path, Entry]:
        """Returns where a path leads and what stands there, if the caller may have it.

        ``operations`` is what it is wanted for; none means ``READ`` of a file or link, ``LIST`` of a
        directory. Raises NotFound also for what the caller may not know of, and Forbidden for what they may
        not read.
        """
        entry = self.version.get(path)
        if entry is not None and entry.kind is _FILE and not operations and self.head is None:
            # Nearly every read: no link leads anywhere, and nothing else needs to be asked.
            self.context.authorize(_READ, path)
            return path, entry
        if self.sees_all:
            return find(self.version, path, final=final)  # nothing of the system is ever found
        place = follow(self.version, path, final=final, may_pass=self.shows)
        is_directory = place.entry is not None and place.entry.kind is _DIRECTORY
        for operation in operations or (self._operation(place.path, is_directory),):
            authorize_ends(self.context, operation, path, place, directory=is_directory)
        if place.entry is None:
            raise missing(path)
        if self._is_deleted(place.path) and not self.context.may(Operation.DELETE, place.path):
            raise missing(path)  # As at HEAD: that it was there once is not for everyone to know.
        return place.path, place.entry

    def may(self, operation: Operation, path: Path) -> bool:
        """Whether the caller may do this to a file or link of this version."""
        return bool(self.permitted(path) & operation.bit)

    def shows(self, path: Path, *, directory: bool = False) -> bool:
        """Whether a listing shows the path to the caller; ``directory``: whether one stands there."""
        return bool(self.permitted(path, directory=directory) & _SHOWN)

    def permitted(self, path: Path, *, directory: bool = False) -> int:
        """Returns all that the caller may do to what this version has at a path, as ``svc.plugin.permitted``.

        That is nothing where it is gone from HEAD and the caller may not see what was deleted.
        """
        if is_system_path(path):
            return 0
        if self.sees_all:
            return _EVERYTHING
        mask = permitted(self.context.identity, path, directory=directory)
        return mask if self._holds(mask, path) else 0

    def flags_if_shown(self, path: Path, *, directory: bool) -> str | None:
        """Returns the caller's flags on a path, or None where a listing does not show it; not for root."""
        mask = permitted(self.context.identity, path, directory=directory)
        return flags_of_mask(mask) if mask & _SHOWN and self._holds(mask, path) else None

    def may_see_deleted(self, path: Path) -> bool:
        """Whether a listing shows the caller that something was deleted at a path, where nothing is now."""
        if is_system_path(path) or not self.context.may(Operation.DELETE, path):
            return False
        # The view of deleted files may be a commit ahead of what is listed.
        return self.version.get(path) is None

    def _operation(self, path: Path, is_directory: bool) -> Operation:
        """``LIST`` for a directory, unless that would tell a caller without any rights that it is one."""
        if not is_directory:
            return _READ
        return _LIST if permitted(self.context.identity, path, directory=True) & _SHOWN else _READ

    def _holds(self, mask: int, path: Path) -> bool:
        """Whether what was granted counts for what this version has: the past may need the flag ``d``."""
        return self.head is None or bool(mask & _DELETE) or not self._is_deleted(path)

    def _is_deleted(self, path: Path) -> bool:
        return self.head is not None and self.head.get(path) is None


def authorize_ends(
    context: Call, operation: Operation, asked: Path, place: Place, *, directory: bool = False
) -> None:
    """Makes sure that the caller may do something to a path, and to the place where its links lead.

    Ask before looking whether anything is there: what is denied then looks the same either way.
    """
    context.authorize(operation, asked, directory=directory)
    if asked != place.path:
        context.authorize(operation, place.path, directory=directory)


def authorize_put(context: Call, place: Place, asked: Path, condition: Condition | None) -> Condition | None:
    """Makes sure that the caller may store something at a place, and returns the condition to do it under.

    A caller who may create and not update must not overwrite what appears in the meantime, nor the reverse:
    the condition that comes back forbids it in the commit itself. Raises NotFound or Forbidden.
    """
    if context.identity.is_unrestricted_root:
        return condition
    may_create, may_update = (context.may(operation, place.path) for operation in (_CREATE, _UPDATE))
    # Those who may do neither get the same answer, whether something is there or not.
    updates = place.entry is not None and (may_create or may_update)
    operation = _UPDATE if updates else _CREATE
    authorize_ends(context, operation, asked, place)
    if may_create and may_update:
        return condition
    condition = condition or Condition()
    if operation is _CREATE:
        return replace(condition, if_none_match=ANY_STATE)
    return replace(condition, if_match=condition.if_match or ANY_STATE)


class PutPermission:
    """The permission to store a body, which may take hours to come.

    ``authorize_put`` decides it, and decides again where the caller was asked for again meanwhile.
    """

    def __init__(self, call: Call, place: Place, asked: Path, condition: Condition | None) -> None:
        self._arguments = call, place, asked, condition
        self._identity = call.identity
        self._condition = authorize_put(*self._arguments)

    def condition(self) -> Condition | None:
        """Returns the condition to store under, by the caller's present rights; NotFound, Forbidden."""
        identity = self._arguments[0].identity
        if identity is not self._identity:
            self._identity, self._condition = identity, authorize_put(*self._arguments)
        return self._condition


def authorize_below(
    context: Call,
    version: Version,
    path: Path,
    entry: Entry,
    operations: tuple[Operation, ...],
    destination: Path | None = None,
) -> Condition | None:
    """Makes sure that the caller may do something to everything at and below a path, as it is in ``version``.

    With a ``destination``, each path there needs ``CREATE`` too. Returns the condition under which the
    decision holds: that the directory is still the same; None where it holds whatever is there.

    Raises:
        NotFound: the caller may not do it at the path itself, or below it and must not know.
        Forbidden: the caller may not do it everywhere below.
        PayloadTooLarge: each path below has to be asked for, and they are more than one request looks at.
    """
    for operation in operations:
        context.authorize(operation, path)
    if destination is not None:
        context.authorize(Operation.CREATE, destination)
    if entry.kind is not EntryKind.DIRECTORY or context.identity.is_unrestricted_root:
        return None
    if _may_everything_below(context, operations, path, destination):
        return None
    for below in _paths_below(version, path, _scan_entries(context)):
        if not all(context.may(operation, below) for operation in operations) or (
            destination is not None and not context.may(Operation.CREATE, destination + below[len(path) :])
        ):
            if context.identity.hides_denials:
                raise missing(path)
            raise Forbidden("You may not do this to everything below the directory.", path=format_path(path))
    return Condition(if_match=(entry.hash.hex(),))


def takes_directories(
    context: Call,
    entry: Entry | None,
    operations: tuple[Operation, ...],
    path: Path,
    destination: Path | None = None,
) -> bool:
    """Whether a directory may be taken that stands at a path by the time of the commit.

    Where nothing stood there, or a file, an earlier operation of a batch or somebody else may put one there,
    which ``authorize_below`` has not looked into: then only who may do it to everything below. A directory
    that it has looked into is taken as it was.
    """
    if entry is not None and entry.kind is EntryKind.DIRECTORY:
        return True
    return _may_everything_below(context, operations, path, destination)


def _may_everything_below(
    context: Call, operations: tuple[Operation, ...], path: Path, destination: Path | None
) -> bool:
    return all(context.may_below(operation, path) for operation in operations) and (
        destination is None or context.may_below(Operation.CREATE, destination)
    )


def commit_condition(guard: Condition | None, condition: Condition | None, place: Place) -> Condition | None:
    """Returns what a commit is made under: a guard of ``authorize_below``, or the caller's own condition.

    Where there is a guard, the caller's own condition is checked here: PreconditionFailed.
    """
    if guard is None:
        return condition
    if condition is not None:
        condition.check(place.path, place.entry)
    return guard


@contextmanager
def guarded(guard: Condition | None) -> Iterator[None]:
    """Around a commit: a guard of ``authorize_below`` that fails is a Conflict, not a failed condition."""
    try:
        yield
    except PreconditionFailed as error:
        if guard is None:
            raise
        raise Conflict("The directory changed meanwhile; try again.", **error.details) from None


def _paths_below(version: Version, path: Path, most: int) -> Iterator[Path]:
    looked_at, pause_at = 0, _PAUSE_EVERY
    for below, _ in version.walk(path):
        if looked_at >= most:
            raise PayloadTooLarge(
                f"What you may do differs below the directory, and it holds over {most} entries, the most "
                "that one request looks at. Take it in parts.",
                path=format_path(path),
                limit=most,
            )
        yield below
        looked_at += looks(below)
        if looked_at >= pause_at:
            pause_at += _PAUSE_EVERY
            pause()


def _scan_entries(context: Call) -> int:
    configuration = context.configuration
    settings = configuration if isinstance(configuration, FilesConfiguration) else FilesConfiguration()
    return settings.scan_entries
