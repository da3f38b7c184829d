"""Exports, patches and imports of a server, in the form in which the commands know those of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing

import msgspec
from msgspec import UNSET, Struct

from svc.errors import InvalidInput, ServiceUnavailable
from svc.plugin import (
    EMPTY_ROOT,
    Change,
    Entry,
    EntryKind,
    Hash,
    Totals,
    format_path,
    parse_path,
)
from svc_backup.commands.output import Progress
from svc_backup.format import ImportResult, Outgoing, OutgoingCounts
from svc_backup.models import ExportReport, ImportQuery, ImportReport, PatchReport
from svc_backup.operations import import_version
from svc_backup.text_difference import write_changes
from svc_client import Client, ReadAt, Response
from svc_maintenance.transfer import ChangeCounts

__all__ = ["Received", "Sending", "received", "show_difference"]

_PIECE = 1024 * 1024


class Received(Outgoing):
    """A file that a server sends, read to its end or an error.

    Args:
        response: the answer with the file.
        report: what the server says that the file holds.
    """

    def __init__(self, response: Response, report: ExportReport | PatchReport) -> None:
        self._response = response
        self.size = report.size
        if isinstance(report, PatchReport):
            self.root, self.base = bytes.fromhex(report.to), bytes.fromhex(report.source)
            changes = ChangeCounts(report.files_added, report.files_modified, report.files_deleted)
            self.counts = OutgoingCounts(
                changes.added + changes.modified, 0, report.chunks, 0, report.directories, changes
            )
        else:
            self.root, self.base = bytes.fromhex(report.version), None
            lost = () if report.lost is UNSET else tuple(report.lost)
            self.counts = OutgoingCounts(
                report.files, report.links, report.chunks, 0, report.directories, lost=lost
            )

    def close(self) -> None:
        """Ends the answer."""
        self._response.close()

    def pieces(self) -> Iterator[bytes]:
        """Yields the file as it comes."""
        left = self.size
        for piece in self._response.pieces():
            left -= len(piece)
            yield piece
        if left:
            raise ServiceUnavailable("The server sent another number of bytes than it said.")


def received(response: Response, form: type[ExportReport | PatchReport]) -> Received:
    """Returns the file that an answer brings; ``form`` is that of its report."""
    try:
        file = Received(response, msgspec.json.decode(response.header("X-Svc-Report"), type=form))
        if response.header("X-Svc-Version") != file.root.hex():
            raise response.foreign()
        return file
    except (msgspec.DecodeError, RecursionError):
        response.close()
        raise response.foreign() from None
    except BaseException:
        response.close()
        raise


class Sending(Struct, frozen=True):
    """How files are sent to a server, which verifies each and takes it in."""

    client: Client
    promote: bool
    force: bool
    progress: Progress

    def send(self, descriptor: int) -> ImportResult:
        """Sends the file that a descriptor stands for."""
        size = os.fstat(descriptor).st_size

        def pieces() -> Iterable[bytes]:
            sent = 0
            while piece := os.pread(descriptor, _PIECE, sent):
                sent += len(piece)
                self.progress("Sending", sent, size)
                yield piece

        query = ImportQuery(promote=self.promote, force=self.force)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        response = self.client.stream(import_version, query, content=pieces, headers=headers)
        return _result(response.json(ImportReport))


def _result(report: ImportReport) -> ImportResult:
    return ImportResult(
        kind=report.backup_type,
        version=bytes.fromhex(report.version_hash),
        base=None if report.base_hash is None else bytes.fromhex(report.base_hash),
        entries=report.entries_imported,
        new_entries=0,
        chunks=report.chunks_imported,
        files=report.files_imported,
        directories=report.directories_imported,
        deletions=report.deletions_applied,
        snapshots=report.snapshots_imported,
        system_entries=report.system_entries_imported,
        head_promoted=report.head_promoted,
        warnings=tuple(report.warnings),
    )


def show_difference(client: Client, source: str, to: str, path: str, *, color: bool, context: int) -> None:
    """Writes how two versions of a server differ to standard output, reading the files that it shows."""
    where = parse_path(path)
    before = _RemoteVersion(client, _root_of(client, source))
    after = _RemoteVersion(client, _root_of(client, to))

    def changes() -> Iterator[Change]:
        query = {"from": before.version, "to": after.version, "path": format_path(where)}
        found = client.request("GET", "/versions/compare", query=query).items("changes", _Changed)
        with closing(found):
            for item in found:
                before.path = after.path = item.path
                yield _change(item)

    write_changes(changes(), before, after, sys.stdout, color=color, context=context)


class _Side(Struct):
    """What stood at a path on one side of a comparison."""

    hash: str | None
    size: int | None
    updated_at: int | None
    entry_type: int
    content_type: str | None
    target: str | None = None


class _Changed(Struct):
    """How a path differs between two versions."""

    path: str
    before: _Side | None
    after: _Side | None


class _Compared(Struct, rename={"source": "from"}):
    source: str


def _root_of(client: Client, name: str) -> str:
    """The root hash in hex that a name of a version means now."""
    query = {"from": name, "to": name}
    return client.request("GET", "/versions/compare", query=query).json(_Compared).source


class _RemoteVersion:
    """Reads contents of a version, at the path of the change that is being written."""

    def __init__(self, client: Client, version: str) -> None:
        self._files = client.files
        self.version = version
        self.path = "/"

    def read_all(self, entry: Entry) -> bytes:
        with self._files.get(self.path, ReadAt(version=self.version), if_match=entry.hash.hex()) as content:
            return b"".join(content)


def _change(item: _Changed) -> Change:
    sides: list[Entry | None] = []
    for side in (item.before, item.after):
        if side is None:
            sides.append(None)
            continue
        if side.hash is None or side.size is None:
            raise InvalidInput("The server does not show everything that differs.", path=item.path)
        hash: Hash = bytes.fromhex(side.hash)
        totals = None
        if side.entry_type == EntryKind.DIRECTORY:
            # Whether it is empty is all that is asked of it: then only is it listed beside what it holds.
            totals = Totals() if not side.size and hash == EMPTY_ROOT else Totals(files=1)
        kind, updated_ms = EntryKind(side.entry_type), side.updated_at or 0
        sides.append(
            Entry(kind, hash, side.size, updated_ms, updated_ms, side.content_type, None, side.target, totals)
        )
    return Change(parse_path(item.path), *sides)
