"""``svc cat``: files to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import click

from svc.errors import Conflict, CorruptRecord
from svc.plugin import EntryKind, content_hasher, format_path, parse_path
from svc_cli import Source, source_options
from svc_files.client import FileInfo, FileStore, ReadPoint
from svc_files.commands.options import open_store, read_point_options

__all__ = ["cat", "stat_file", "whole_file", "write_pieces"]


@click.command(short_help="Writes files to standard output.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@read_point_options
@source_options
def cat(*, paths: tuple[str, ...], point: ReadPoint, source: Source) -> None:
    """Writes the files at PATH... to standard output, one after the other."""
    with open_store(source) as store:
        version = store.pin(point, parse_path(paths[0]))
        for path in paths:
            info = stat_file(store, path, version)
            write_pieces(whole_file(store, info, version), sys.stdout.buffer)


def stat_file(store: FileStore, path: str, version: str) -> FileInfo:
    """Describes the file at a path; NotFound where nothing is, Conflict where a directory is."""
    info = store.stat(parse_path(path), version)
    if info.kind is not EntryKind.FILE:
        raise Conflict(
            "A directory stands at this path; svc ls lists it, svc dump writes it.",
            path=format_path(info.path),
        )
    return info


def whole_file(store: FileStore, info: FileInfo, version: str) -> Iterator[bytes]:
    """Yields the bytes of a file; CorruptRecord at their end where they are others."""
    hasher = content_hasher()
    for piece in store.read(info, version):
        hasher.update(piece)
        yield piece
    if hasher.hexdigest() != info.hash:
        raise CorruptRecord("The bytes do not have the file's content hash.", path=format_path(info.path))


def write_pieces(pieces: Iterable[bytes], out: BinaryIO) -> None:
    """Writes a stream of bytes and flushes it."""
    out.writelines(pieces)
    out.flush()
