"""Directories, and copies that cost no data."""

from __future__ import annotations

from svc.errors import AlreadyExists, Conflict, InvalidInput, PreconditionFailed
from svc.plugin import (
    Condition,
    EntryKind,
    Operation,
    Path,
    Transaction,
    format_path,
)
from svc_files.access import (
    authorize_below,
    authorize_ends,
    body_path,
    takes_directories,
)
from svc_files.models import Copied, CopiedEntry, CopyBody, EntryInfo, MakeDirectoryBody
from svc_files.requests import Writing
from svc_files.resolving import Place, missing

__all__ = ["copy", "make_directory", "queue_copy"]


def make_directory(writing: Writing, body: MakeDirectoryBody) -> tuple[EntryInfo, bool]:
    """Makes a directory and its parents; returns it, and whether it is new.

    Raises AlreadyExists where something is there, but for a directory with ``exist_ok``.
    """
    path = body_path(body.path)
    place = writing.follow(path)
    authorize_ends(writing.context, Operation.CREATE, path, place)
    with writing.transaction() as transaction:
        handle = transaction.mkdir(place.path, exist_ok=body.exist_ok)
    result = handle.result
    assert transaction.result is not None
    assert result.after is not None
    version = transaction.result.version.hex()
    return EntryInfo(**writing.item(place.path, result.after), version=version), result.before is None


def copy(writing: Writing, body: CopyBody) -> Copied:
    """Copies each path into a directory, which appears when it is not there, in one commit."""
    sources = [body_path(text) for text in body.paths]
    asked = body_path(body.destination)
    directory = writing.follow(asked)
    targets = [_target(writing, directory.path, source) for source in sources]
    if directory.entry is not None and directory.entry.kind is not EntryKind.DIRECTORY:
        raise Conflict("The destination is not a directory.", path=format_path(asked))
    copied: list[CopiedEntry] = []
    transaction = writing.transaction()
    for source, target in zip(sources, targets, strict=True):
        place = queue_copy(writing, transaction, source, target, overwrite=body.overwrite)
        assert place.entry is not None
        copied.append(CopiedEntry(format_path(place.path), format_path(target), place.entry.kind))
    try:
        version = transaction.commit().version.hex()
    except PreconditionFailed as error:
        raise AlreadyExists("Something stands at the destination.", **error.details) from None
    return Copied(copied, version)


def _target(writing: Writing, directory: Path, source: Path) -> Path:
    if not source:
        raise InvalidInput("The root directory cannot be copied into itself.", path="/")
    target = (*directory, source[-1])
    writing.context.authorize(Operation.CREATE, target)
    return target


def queue_copy(
    writing: Writing, transaction: Transaction, source: Path, target: Path, *, overwrite: bool
) -> Place:
    """Adds a copy to a transaction if the caller may read everything that it copies.

    Returns the source, links on the way resolved. Raises NotFound or Forbidden.
    """
    context = writing.context
    place = writing.follow(source, final=False)
    authorize_ends(context, Operation.READ, source, place)
    context.authorize(Operation.CREATE, target)
    if overwrite:
        context.authorize(Operation.UPDATE, target)
    if place.entry is None:
        raise missing(source)
    guard = authorize_below(context, writing.version, place.path, place.entry, (Operation.READ,), target)
    if guard is None:
        directories = takes_directories(context, place.entry, (Operation.READ,), place.path, target)
        transaction.copy(place.path, target, overwrite=overwrite, takes_directories=directories)
    else:
        # Exactly what was looked at: what others add meanwhile, the caller may not be allowed to read.
        transaction.put_entry(target, place.entry, condition=Condition(if_none_match=("*",)))
    return place
