"""The way of one file into a database, which a refusal leaves as it was: compared, verified, taken."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from svc.errors import Conflict, PreconditionFailed
from svc.plugin import Database, Hash, SystemPaths
from svc_backup.format import (
    ImportResult,
    IncomingFile,
    IncomingLimits,
    TransferHeader,
    apply_incoming,
    check_incoming,
)

__all__ = ["ImportOptions", "import_incoming", "open_incoming", "require_base"]


class ImportOptions(Struct, frozen=True):
    """How a file is imported.

    Attributes:
        promote: make its version HEAD.
        force: take a patch whose base is not HEAD.
        system_paths: also take what these say of the file's system data; the root key was checked.
        actor: who imports, for the commit.
        pause: lets others run.
        progress: told (phase, bytes done, bytes in all).
    """

    promote: bool = False
    force: bool = False
    system_paths: SystemPaths | None = None
    actor: str | None = None
    pause: Callable[[], None] = lambda: None
    progress: Callable[[str, int, int], None] | None = None


def open_incoming(
    database: Database | None,
    descriptor: int,
    name: str,
    limits: IncomingLimits,
    pause: Callable[[], None] = lambda: None,
) -> IncomingFile:
    """Opens a file and checks its headers; the caller closes it, and the descriptor."""
    directory = None if database is None else database.state_directory
    return IncomingFile(descriptor, name, limits=limits, directory=directory, pause=pause)


def require_base(header: TransferHeader, present: Hash, *, force: bool) -> None:
    """Makes sure that a patch was made from the version that it is applied to."""
    if header.base is None or header.base == present or force:
        return
    raise Conflict(
        f"The patch was made from version {header.base.hex()}, and HEAD is {present.hex()}. "
        "Import the patches between them first, or use --force (over HTTP force=true) to skip this check.",
        base=header.base.hex(),
        head=present.hex(),
    )


def import_incoming(
    database: Database, file: IncomingFile, options: ImportOptions, *, present: Hash | None = None
) -> ImportResult:
    """Verifies a file and takes it into a database, which a refusal leaves as it was; blocks.

    Raises Conflict, without ``force``, for a patch that does not apply to ``present``; None means HEAD.
    """
    with database.hold():  # what the file lacks and the database has stays until a commit names it
        return _import_held(database, file, options, present)


def _import_held(
    database: Database, file: IncomingFile, options: ImportOptions, present: Hash | None
) -> ImportResult:
    is_head = present is None
    if present is None:
        present = database.head().root
    require_base(file.header, present, force=options.force)
    told = options.progress
    checked = check_incoming(
        file,
        database,
        pause=options.pause,
        progress=None if told is None else lambda done, total: told("Verifying", done, total),
    )
    must_match = options.promote and file.is_patch and not options.force and is_head
    try:
        return apply_incoming(
            database,
            checked,
            promote=options.promote,
            expected=file.base if must_match else None,
            system_paths=options.system_paths,
            actor=options.actor,
            pause=options.pause,
            progress=None if told is None else lambda done, total: told("Importing", done, total),
        )
    except PreconditionFailed:
        require_base(file.header, database.head().root, force=False)
        raise
