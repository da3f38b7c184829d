"""The responder of ``/files/download``: files and directories as one streamed ZIP archive."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import falcon

from svc.errors import SvcError
from svc.plugin import (
    Entry,
    EntryKind,
    Operation,
    Path,
    context_of,
    pause,
    read_json,
    read_parameters,
    send_stream,
)
from svc_files.access import Reading, body_path, require_count
from svc_files.content_types import is_compressed
from svc_files.models import DownloadBody, ReadQuery
from svc_files.requests import MOST_OF_PATHS, reading_of, settings_of
from svc_files.zip_stream import ZipMember, stream_zip

__all__ = ["download"]

_PAUSE_EVERY = 256


def download(req: falcon.Request, resp: falcon.Response) -> None:
    """Streams the archive. Every path must be there; below it, what may not be read is left out."""
    call = context_of(req)
    settings = settings_of(call)
    body = read_json(req, DownloadBody, MOST_OF_PATHS)
    require_count(len(body.paths), settings.maximum_batch, "paths")
    reading = reading_of(call, read_parameters(req, ReadQuery))
    hold = reading.hold()
    roots: list[tuple[str, Path, Entry]] = []
    taken: set[str] = set()
    for asked in dict.fromkeys(body_path(path) for path in body.paths):
        found, entry = reading.find(asked)
        roots.append((_unique_name(asked, taken), found, entry))
    resp.set_header("Content-Disposition", _disposition(roots))
    resp.set_header("X-Svc-Version", reading.version.root.hex())
    archive = stream_zip(_members(reading, roots, body.compress))
    send_stream(resp, archive, None, content_type="application/zip", hold=hold)


def _members(
    reading: Reading, roots: list[tuple[str, Path, Entry]], compress: bool
) -> Iterator[ZipMember | None]:
    for name, path, entry in roots:
        if entry.kind is EntryKind.DIRECTORY:
            yield from _directory(reading, name, path, entry, compress)
        else:
            yield _file(reading, name, entry, compress)


def _directory(
    reading: Reading, name: str, path: Path, entry: Entry, compress: bool
) -> Iterator[ZipMember | None]:
    prefix = f"{name}/" if name else ""
    if prefix and _is_empty(entry):
        yield ZipMember(prefix, 0, entry.updated_ms)
    for number, (found, below) in enumerate(reading.version.walk(path), start=1):
        if number % _PAUSE_EVERY == 0:
            # Much may be left out, and a client who has gone is noticed only at what is sent.
            pause()
            yield None
        member = prefix + "/".join(_portable(segment) for segment in found[len(path) :])
        if below.kind is EntryKind.DIRECTORY:
            if _is_empty(below) and reading.shows(found, directory=True):
                yield ZipMember(f"{member}/", 0, below.updated_ms)
            continue
        file: Entry | None = below
        if below.kind is EntryKind.SYMLINK:
            file = _behind(reading, found)
        elif not reading.may(Operation.READ, found):
            file = None
        if file is not None:
            yield _file(reading, member, file, compress)


def _behind(reading: Reading, link: Path) -> Entry | None:
    """The file that a link leads to; None for a directory, which may hold the link itself."""
    try:
        _, entry = reading.find(link, Operation.READ)
    except SvcError:
        return None
    return entry if entry.kind is EntryKind.FILE else None


def _file(reading: Reading, name: str, entry: Entry, compress: bool) -> ZipMember:
    return ZipMember(
        name,
        entry.size,
        entry.updated_ms,
        reading.version.read(entry),
        compress and not is_compressed(entry.content_type),
    )


def _is_empty(entry: Entry) -> bool:
    totals = entry.totals
    return totals is None or not (totals.files or totals.directories or totals.symlinks)


def _unique_name(path: Path, taken: set[str]) -> str:
    """The name of a path at the top of the archive; the root's content lies there without one."""
    if not path:
        return ""
    name = _portable(path[-1])
    stem, dot, extension = name.rpartition(".")
    number = 1
    while name in taken:
        number += 1
        name = f"{stem} ({number}).{extension}" if dot and stem else f"{_portable(path[-1])} ({number})"
    taken.add(name)
    return name


def _portable(segment: str) -> str:
    """A segment as an archive may hold it: some programs take a backslash for a separator."""
    return segment.replace("\\", "_")


def _disposition(roots: list[tuple[str, Path, Entry]]) -> str:
    name = f"{roots[0][0] or 'files'}.zip" if len(roots) == 1 else "files.zip"
    plain = "".join(
        character if (character.isalnum() and character.isascii()) or character in " ._-()" else "_"
        for character in name
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
