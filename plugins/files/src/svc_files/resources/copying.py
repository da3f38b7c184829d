"""``/files/mkdir`` and ``/files/copy``: directories, and copies that cost no data."""

from __future__ import annotations

from typing import Annotated, Any

import falcon
import msgspec

from svc.errors import AlreadyExists, Conflict, InvalidInput, PreconditionFailed
from svc.plugin import (
    Condition,
    EntryKind,
    Operation,
    Path,
    Transaction,
    format_path,
    read_json,
    requires_in_body,
    send_json,
)
from svc_files.access import (
    authorize_below,
    authorize_ends,
    body_path,
    require_count,
    takes_directories,
)
from svc_files.requests import Writing, settings_of, writing_of
from svc_files.resolving import Place, missing

__all__ = ["CopyResource", "MakeDirectoryResource", "queue_copy"]


class MakeDirectoryBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a mkdir; with ``exist_ok`` a directory that is there is no error."""

    path: str
    exist_ok: bool = False


class MakeDirectoryResource:
    """Makes a directory and its parents."""

    @requires_in_body(Operation.CREATE)
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes the directory: 201, or 200 when it was there and may be."""
        body = read_json(req, MakeDirectoryBody, settings_of(req).maximum_json)
        path = body_path(body.path)
        writing = writing_of(req)
        place = writing.follow(path)
        authorize_ends(writing.context, Operation.CREATE, path, place)
        with writing.transaction() as transaction:
            handle = transaction.mkdir(place.path, exist_ok=body.exist_ok)
        result = handle.result
        assert transaction.result is not None
        assert result.after is not None
        version = transaction.result.version.hex()
        resp.set_header("X-Svc-Version", version)
        answer = writing.item(place.path, result.after)
        answer["version"] = version
        send_json(resp, answer, 201 if result.before is None else 200)


class CopyBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a copy: what, the directory that it goes into, and whether files there may be replaced."""

    paths: Annotated[list[str], msgspec.Meta(min_length=1)]
    destination: str
    overwrite: bool = False


class CopyResource:
    """Copies files, links and directories into a directory, in one commit."""

    @requires_in_body(Operation.READ, Operation.CREATE)
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Copies each path under its own name; the directory appears when it is not there."""
        settings = settings_of(req)
        body = read_json(req, CopyBody, settings.maximum_json)
        require_count(len(body.paths), settings.maximum_batch, "paths")
        sources = [body_path(text) for text in body.paths]
        asked = body_path(body.destination)
        writing = writing_of(req)
        directory = writing.follow(asked)
        targets = [_target(writing, directory.path, source) for source in sources]
        if directory.entry is not None and directory.entry.kind is not EntryKind.DIRECTORY:
            raise Conflict("The destination is not a directory.", path=format_path(asked))
        copied: list[dict[str, Any]] = []
        transaction = writing.transaction()
        for source, target in zip(sources, targets, strict=True):
            place = queue_copy(writing, transaction, source, target, overwrite=body.overwrite)
            assert place.entry is not None
            copied.append(
                {
                    "from": format_path(place.path),
                    "path": format_path(target),
                    "entry_type": int(place.entry.kind),
                }
            )
        try:
            version = transaction.commit().version.hex()
        except PreconditionFailed as error:
            raise AlreadyExists("Something stands at the destination.", **error.details) from None
        resp.set_header("X-Svc-Version", version)
        send_json(resp, {"copied": copied, "version": version})


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
