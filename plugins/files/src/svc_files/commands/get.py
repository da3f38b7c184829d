"""``svc get``: one file out of the database, whole or a range of it, onto the disk."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator

import click

from svc.errors import CorruptRecord, RangeNotSatisfiable, ServiceUnavailable, UsageError
from svc.plugin import content_hasher, format_path, parse_path
from svc_cli import Source, source_options
from svc_files.client import FileInfo, FileStore, ReadPoint
from svc_files.commands.cat import stat_file, whole_file, write_pieces
from svc_files.commands.options import json_option, open_store, read_point_options
from svc_files.commands.output import ProgressLine, count_of, json_line, printable, size_text, unwritable

__all__ = ["get"]

_RANGE = re.compile(r"(?:bytes=)?(\d*)-(\d*)")
_PIECE = 1024 * 1024


@click.command(short_help="Writes one file onto the disk.")
@click.argument("path")
@click.argument("out", type=click.Path(allow_dash=True), metavar="[OUT|-]", default="")
@click.option("-C", "--continue", "resume", is_flag=True, help="Go on from what an earlier get left.")
@click.option("--range", "byte_range", metavar="A-B", help="Only these bytes: A-B, A- or -N (the last N).")
@click.option("--keep-times", is_flag=True, help="Set OUT's modification time to that in the database.")
@read_point_options
@json_option
@source_options
def get(
    *,
    path: str,
    out: str,
    resume: bool,
    byte_range: str | None,
    keep_times: bool,
    point: ReadPoint,
    as_json: bool,
    source: Source,
) -> None:
    """Writes the file at PATH to OUT, or to standard output (-).

    OUT is the file's name in the current directory by default, and may be a directory. It appears
    under its name only when it is whole and has the content hash that it should.
    """
    if resume and (byte_range is not None or out == "-"):
        raise UsageError("--continue goes with a whole file on the disk.")
    if as_json and out == "-":
        raise UsageError("--json and standard output as OUT exclude each other.")
    with open_store(source) as store:
        version = store.pin(point, parse_path(path))
        info = stat_file(store, path, version)
        start, length = _selected_range(byte_range, info.size)
        if out == "-":
            if byte_range is None:
                pieces = whole_file(store, info, version)
            else:
                pieces = store.read(info, version, start=start, length=length)
            write_pieces(pieces, sys.stdout.buffer)
            return
        where = _location(out, info)
        try:
            if byte_range is not None:
                written = _write_range(store, version, info, where, start, length)
            else:
                written = _Download(store, version, info, where).run(resume)
            if keep_times:
                os.utime(where, ns=(info.updated_ms * 1_000_000, info.updated_ms * 1_000_000))
        except OSError as error:
            raise unwritable(where, error) from error
    if as_json:
        json_line(
            {
                **info.as_json(),
                "content_hash": info.hash,
                "version": version,
                "file": printable(where),
                "bytes_transferred": written,
            }
        )
    else:
        click.echo(f"wrote {printable(where)} ({size_text(written)})", err=True)


class _Download:
    """A whole file on its way to the disk.

    What has arrived lies beside it, in a file whose name holds the beginning of the content hash: so
    going on can only ever go on with the same content.
    """

    def __init__(self, store: FileStore, version: str, info: FileInfo, where: str) -> None:
        self._store = store
        self._version = version
        self._info = info
        self._where = where
        directory, name = os.path.split(where)
        # A name may have 255 bytes, and so may the partial file's.
        shortened = os.fsdecode(os.fsencode(name)[:200])
        self._partial = os.path.join(directory, f".{shortened}.{info.hash[:16]}.part")

    def run(self, resume: bool) -> int:
        """Fetches what is missing, checks the whole, gives it its name; returns the bytes fetched.

        Raises CorruptRecord for a wrong content hash. What has arrived before the connection was lost, or
        the user ended it, stays for ``--continue``; of any other failure nothing does.
        """
        try:
            return self._fetch(resume)
        except BaseException as error:
            lost = isinstance(error, ServiceUnavailable | KeyboardInterrupt)
            with contextlib.suppress(OSError):
                if not lost or not os.path.getsize(self._partial):
                    os.unlink(self._partial)
                else:
                    click.echo("svc: what has arrived is kept; 'svc get --continue' goes on.", err=True)
            raise

    def _fetch(self, resume: bool) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if resume else os.O_TRUNC)
        descriptor = os.open(self._partial, flags, 0o666)
        with open(descriptor, "r+b", buffering=0) as file:
            hasher = content_hasher()
            present = 0
            while piece := file.read(_PIECE):
                hasher.update(piece)
                present += len(piece)
            fetched = 0
            if present < self._info.size:
                for piece in self._pieces(present):
                    hasher.update(piece)
                    _write_all(file.fileno(), piece)
                    fetched += len(piece)
            if hasher.hexdigest() != self._info.hash:
                raise CorruptRecord(
                    "The bytes do not have the file's content hash; what was fetched is thrown away.",
                    path=format_path(self._info.path),
                )
            os.fsync(file.fileno())
        os.replace(self._partial, self._where)
        return fetched

    def _pieces(self, present: int) -> Iterator[bytes]:
        with ProgressLine(self._info.name) as progress:
            progress.expect(self._info.size)
            done = present
            for piece in self._store.read(self._info, self._version, start=present):
                done += len(piece)
                progress.show(done, f"{size_text(done)} of {size_text(self._info.size)}")
                yield piece


def _write_range(store: FileStore, version: str, info: FileInfo, where: str, start: int, length: int) -> int:
    partial = f"{where}.{os.getpid()}.part"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        try:
            for piece in store.read(info, version, start=start, length=length):
                _write_all(descriptor, piece)
        finally:
            os.close(descriptor)
        os.replace(partial, where)
    except BaseException:
        os.unlink(partial)
        raise
    return length


def _selected_range(text: str | None, size: int) -> tuple[int, int]:
    """First byte and number of bytes that a range names; RangeNotSatisfiable where no byte of it exists."""
    if text is None:
        return 0, size
    match = _RANGE.fullmatch(text.strip())
    if match is None or match[1] == match[2] == "":
        raise UsageError("--range takes A-B, A- or -N.")
    if not match[1]:
        length = min(int(match[2]), size)
        start = size - length
    else:
        start = int(match[1])
        end = min(int(match[2]), size - 1) if match[2] else size - 1
        if match[2] and int(match[2]) < start:
            raise UsageError("--range ends before it begins.")
        length = end - start + 1
    if start >= size or length <= 0:
        raise RangeNotSatisfiable(f"The file has {count_of(size, 'byte')}; --range names none of them.")
    return start, length


def _location(out: str, info: FileInfo) -> str:
    if not out or out.endswith("/") or os.path.isdir(out):
        return os.path.join(out, info.name)
    # A link that stands at OUT is followed, so that what it leads to is replaced, not the link.
    return os.path.realpath(out) if os.path.islink(out) else out


def _write_all(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
