"""What the forms of the pages do: each by one operation, with a message that says how to take it back."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from svc_portal.api import Act, Answer, Handed, Message, Redirect, Shown, Undo

from svc.errors import Forbidden, InvalidInput, NotFound, SvcError
from svc.plugin import Operation, Path, format_path, parse_path
from svc_files.models import (
    BatchBody,
    CopyBody,
    DeleteOperation,
    DownloadBody,
    FileQuery,
    MakeDirectoryBody,
    MoveOperation,
    PutOperation,
    RestoreBody,
)
from svc_files.operations import batch, copy, download, make_directory, read_path, restore_deleted

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["acts"]

_LIST = "list"
_MOVES = "moves"
_MOST_NAMED = 5
_MOST_KEPT = 50
"""Folders of an upload that are found to hold something else, before the others stay too."""


def acts() -> dict[str, Act]:
    """Returns what forms do, each at the path of its page."""
    return {name: partial(_at_its_path, step) for name, step in _ACTIONS.items()}


def _at_its_path(step: Callable[[PortalRequest, Path], Answer], request: PortalRequest) -> Answer:
    return step(request, request.fields["path"])


def _make_directory(request: PortalRequest, path: Path) -> Answer:
    made = (*path, *parse_path(request.form.require("name")))
    request.call(make_directory, MakeDirectoryBody(format_path(made)))
    undo = _undo(request, path, "delete", _LIST, [format_path(made)], only_empty="1")
    return Redirect(_here(request, path), Message(f"Made the directory {made[-1]}.", undo))


def _rename(request: PortalRequest, path: Path) -> Answer:
    """Gives one entry another name, or another path."""
    to = (*path[:-1], *parse_path(request.form.require("name")))
    return _moved(request, path[:-1], [(path, to)], f"Renamed {_name(path)} to {_name(to)}.")


def _delete(request: PortalRequest, path: Path) -> Answer:
    paths = _paths(request)
    recursive = not request.form.get("only_empty")
    request.call(batch, BatchBody([DeleteOperation(path=one, recursive=recursive) for one in paths]))
    # The page that comes next is of the directory where that of the form is gone.
    back = path[:-1] if format_path(path) in paths else path
    undo = _undo(request, back, "restore", _LIST, paths)
    return Redirect(_here(request, back), Message(f"Deleted {_named(paths)}.", undo))


def _restore(request: PortalRequest, path: Path) -> Answer:
    paths = _paths(request)
    for one in paths:
        request.call(restore_deleted, RestoreBody(one))
    return Redirect(_here(request, path), Message(f"Restored {_named(paths)}."))


def _upload(request: PortalRequest, path: Path) -> Answer:
    """Stores the files of a form, for browsers without JavaScript; it replaces nothing."""
    puts = [
        PutOperation(
            path=format_path((*path, file.name)),
            content_base64=base64.b64encode(file.content).decode("ascii"),
            content_type=file.content_type,
            if_none_match="*",
        )
        for file in request.files
    ]
    if not puts:
        raise InvalidInput("Nothing was chosen.", field="files")
    results = request.call(batch, BatchBody([*puts])).results
    paths = [put.path for put in puts]
    stored = [(one["path"], one["content_hash"]) for one in results]
    undo = _undo(request, path, "take_back", _LIST, stored)
    return Redirect(_here(request, path), Message(f"Uploaded {_named(paths)}.", undo))


def _take_back(request: PortalRequest, path: Path) -> Answer:
    """Takes an upload back: what it made goes, and what it replaced is as a version before it has it.

    What was changed since stays. Nothing goes before it is known that all that was replaced may come back.
    """
    made, replaced = _stored(request, _LIST), _stored(request, "replaced")
    version = request.form.get("version")
    for one in replaced:
        if not all(request.may(needed, parse_path(one)) for needed in (Operation.DELETE, Operation.CREATE)):
            raise Forbidden("You may not bring back what the upload replaced.", path=one)
        request.send(read_path, parse_path(one), FileQuery(version=version), method="HEAD").close()
    stored = made | replaced
    present = {one: _present_hash(request, one, hash) for one, hash in stored.items()}
    going = [one for one in stored if present[one] == stored[one]]
    changed = [one for one in stored if one not in going and (one in replaced or present[one] is not None)]
    if going:
        deletes = [DeleteOperation(path=one, if_match=stored[one]) for one in going]
        request.call(batch, BatchBody([*deletes]))
    lost = [one for one in going if one in replaced and not _is_back(request, one, version)]
    gone = _without_empty(request, _listed(request, "folders"), [one for one in going if one in made])
    text = "The upload was taken back."
    if changed:
        text = f"The upload was taken back, but what was changed since stays: {_few(changed)}."
    if lost:
        text += f" These are among the deleted files, and did not come back: {_few(lost)}."
    undo = _undo(request, path, "restore", _LIST, gone) if gone else None
    return Redirect(_here(request, path), Message(text, undo, is_error=bool(lost)))


def _present_hash(request: PortalRequest, path: str, stored: str) -> str | None:
    """The hash of what stands at a path; ``stored`` for who may not read it: the delete compares it."""
    if not request.may(Operation.READ, parse_path(path)):
        return stored
    try:
        answer = request.send(read_path, parse_path(path), FileQuery(), method="HEAD")
    except NotFound:
        return None
    answer.close()
    return answer.headers.get("x-svc-content-hash", "")


def _is_back(request: PortalRequest, path: str, version: str) -> bool:
    try:
        request.call(restore_deleted, RestoreBody(path, version))
    except SvcError:
        return False
    return True


def _without_empty(request: PortalRequest, folders: list[str], files: list[str]) -> list[str]:
    """Deletes the folders of an upload that are empty without its files; returns the paths that went."""
    tops = {parse_path(folder) for folder in folders}
    top_of = {file: _first_of(tops, parse_path(file)) for file in files}
    parents = {
        parse_path(file)[:length]
        for file, top in top_of.items()
        if top is not None
        for length in range(len(top), len(parse_path(file)))
    }
    going = sorted(parents, key=len, reverse=True)
    for _ in range(_MOST_KEPT):
        if not going:
            break
        try:
            request.call(batch, BatchBody([DeleteOperation(path=format_path(one)) for one in going]))
            break
        except SvcError as error:  # Something else is in one, or it may not be deleted: it stays.
            index = error.details.get("operation")
            kept = going[index] if isinstance(index, int) else ()
            going = [one for one in going if one != kept[: len(one)]] if kept else []
    else:
        going = []
    whole = tops & set(going)
    return [*map(format_path, whole), *(file for file, top in top_of.items() if top not in whole)]


def _first_of(tops: set[Path], file: Path) -> Path | None:
    return next((file[:length] for length in range(1, len(file)) if file[:length] in tops), None)


def _move(request: PortalRequest, path: Path) -> Answer:
    paths = _paths(request)
    if "destination" not in request.form:
        return _ask(request, path, "move", "Move", paths)
    into = parse_path(request.form.require("destination"))
    moves = [(one, (*into, one[-1])) for one in map(parse_path, paths) if one]
    return _moved(request, path, moves, f"Moved {_named(paths)} to {format_path(into)}.")


def _relocate(request: PortalRequest, path: Path) -> Answer:
    """Moves each of some paths to a path of its own: what takes a move back."""
    moves = msgspec.json.decode(request.form.require(_MOVES), type=list[tuple[str, str]])
    pairs = [(parse_path(source), parse_path(target)) for source, target in moves]
    return _moved(request, path, pairs, f"Moved {_named([source for source, _ in moves])} back.")


def _copy(request: PortalRequest, path: Path) -> Answer:
    paths = _paths(request)
    if "destination" not in request.form:
        return _ask(request, path, "copy", "Copy", paths)
    into = request.form.require("destination")
    copied = request.call(copy, CopyBody(paths, into)).copied
    undo = _undo(request, path, "delete", _LIST, [one.path for one in copied])
    return Redirect(_here(request, path), Message(f"Copied {_named(paths)} to {into}.", undo))


def _archive(request: PortalRequest, path: Path) -> Answer:
    del path
    return Handed(request.send(download, DownloadBody(_paths(request))))


_ACTIONS: dict[str, Callable[[PortalRequest, Path], Answer]] = {
    "mkdir": _make_directory,
    "rename": _rename,
    "delete": _delete,
    "restore": _restore,
    "take_back": _take_back,
    "upload": _upload,
    "move": _move,
    "relocate": _relocate,
    "copy": _copy,
    "zip": _archive,
}


def _moved(request: PortalRequest, back: Path, moves: list[tuple[Path, Path]], text: str) -> Answer:
    operations = [MoveOperation(path=format_path(source), to=format_path(to)) for source, to in moves]
    request.call(batch, BatchBody([*operations]))
    pairs = [(format_path(to), format_path(source)) for source, to in reversed(moves)]
    return Redirect(_here(request, back), Message(text, _undo(request, back, "relocate", _MOVES, pairs)))


def _ask(request: PortalRequest, path: Path, form: str, title: str, paths: list[str]) -> Shown:
    """Asks where some paths are to go."""
    here = _here(request, path)
    values = {"path": path, "here": here, "back": here, "form": form, "paths": paths, "title": title}
    return Shown("form.html", {**values, "destination": format_path(path)}, title=f"{title} {_named(paths)}")


def _paths(request: PortalRequest) -> list[str]:
    """The paths that were chosen; as one list where a message had them."""
    paths = _listed(request, _LIST) or request.form.all("paths")
    if not paths:
        raise InvalidInput("Nothing was chosen.", field="paths")
    return paths


def _listed(request: PortalRequest, field: str) -> list[str]:
    try:
        return msgspec.json.decode(request.form.get(field) or "[]", type=list[str])
    except msgspec.DecodeError:
        return []


def _stored(request: PortalRequest, field: str) -> dict[str, str]:
    """The paths that an upload wrote, each with the hash of what it stored there."""
    try:
        return dict(msgspec.json.decode(request.form.get(field) or "[]", type=list[tuple[str, str]]))
    except msgspec.DecodeError:
        raise InvalidInput("It is a list of paths and hashes.", field=field) from None


def _undo(
    request: PortalRequest,
    path: Path,
    action: str,
    field: str,
    things: list[str] | list[tuple[str, str]],
    **others: str,
) -> Undo:
    return Undo(
        _here(request, path), {"action": action, field: msgspec.json.encode(things).decode(), **others}
    )


def _here(request: PortalRequest, path: Path) -> str:
    return request.url("files", path=path)


def _name(path: Path) -> str:
    return path[-1] if path else "/"


def _few(paths: list[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more


def _named(paths: list[str]) -> str:
    return _name(parse_path(paths[0])) if len(paths) == 1 else f"{len(paths)} entries"
