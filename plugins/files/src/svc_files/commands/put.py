"""``svc put``: one file, or standard input, into the database."""

from __future__ import annotations

import os
import stat
import sys

import click
from msgspec.structs import replace

from svc.errors import Conflict, Forbidden, InvalidInput, NotFound, UsageError
from svc.plugin import EntryKind, Path, format_path, parse_path
from svc_cli import Source, source_options, terminal_text
from svc_files.client import FileStore, PutOptions, ReadPoint, SourceUnreadable, Stored, open_source
from svc_files.client.source import DescriptorReader, time_in_ms
from svc_files.commands.options import fork_option, json_option, open_store
from svc_files.commands.output import json_line, printable, size_text

__all__ = ["put"]


@click.command(short_help="Stores one file, or standard input.")
@click.argument("file", type=click.Path(allow_dash=True, readable=False), metavar="FILE|-")
@click.argument("path")
@click.option("--content-type", metavar="TYPE", help="Media type; else the content and the name decide.")
@click.option("--if-match", metavar="HASH", help="Replace only a file with this content hash.")
@click.option("--create-only", is_flag=True, help="Refuse when something stands at PATH.")
@click.option("--keep-times", is_flag=True, help="Store FILE's own modification time.")
@fork_option
@json_option
@source_options
def put(
    *,
    file: str,
    path: str,
    content_type: str | None,
    if_match: str | None,
    create_only: bool,
    keep_times: bool,
    fork: str | None,
    as_json: bool,
    source: Source,
) -> None:
    """Stores FILE, or standard input (-), at PATH.

    A PATH that ends in a slash, or names a directory, gets the file's own name below it.
    """
    if if_match is not None and create_only:
        raise UsageError("--if-match and --create-only exclude each other.")
    if file == "-" and (keep_times or path.endswith("/")):
        raise UsageError("Standard input has neither a name nor a time of its own.")
    if file != "-":
        _require_file(file)
    options = PutOptions(content_type, _hash_text(if_match), create_only, fork=fork)
    with open_store(source, writable=True, create=True) as store:
        where = _destination(store, file, path, fork)
        try:
            stored = _put(store, file, where, options, keep_times)
        except SourceUnreadable as error:
            if isinstance(error.__cause__, PermissionError):
                raise Forbidden(f"There is no permission to read {printable(file)}.") from error
            name = "Standard input" if file == "-" else printable(file)
            raise InvalidInput(f"{name} cannot be read: {error}.") from error
    if as_json:
        json_line(
            {
                **stored.info.as_json(),
                "content_hash": stored.info.hash,
                "version": stored.version,
                "created": stored.created,
            }
        )
    else:
        verb = "stored" if stored.created else "replaced"
        about = f"{size_text(stored.info.size)}, {stored.info.content_type}"
        click.echo(terminal_text(f"{verb} {format_path(stored.info.path)} ({about})"))


def _require_file(file: str) -> None:
    """Raises what a person should know of a FILE that cannot be stored, before anything is opened."""
    if not file:
        raise UsageError("FILE is empty; - is standard input.")
    try:
        mode = os.stat(file).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is no file {printable(file)}.") from None
    except PermissionError:
        raise Forbidden(f"There is no permission to read {printable(file)}.") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidInput(f"{printable(file)[:200]} cannot be read: {reason}.") from None
    if stat.S_ISDIR(mode):
        raise UsageError(f"{printable(file)} is a directory; svc load stores directories.")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{printable(file)} is no regular file; pipe it in, with - as FILE.")


_READS = 3


def _put(store: FileStore, file: str, where: Path, options: PutOptions, keep_times: bool) -> Stored:
    if file == "-":
        return store.put(where, DescriptorReader(sys.stdin.fileno(), file), None, options)
    for _ in range(_READS):
        with open_source(os.path.realpath(file)) as (descriptor, status):
            if keep_times:
                time_ms = time_in_ms(status.st_mtime_ns)
                options = replace(options, time_ms=time_ms)
            # A file that the system makes up, as below /proc, has a size of 0 whatever it holds.
            size = status.st_size or None
            stored = store.put(where, DescriptorReader(descriptor, file, size), size, options)
            after = os.fstat(descriptor)
        if (after.st_size, after.st_mtime_ns) == (status.st_size, status.st_mtime_ns):
            return stored
        # What was stored is of no one moment: it is stored again, in the place of that.
        options = replace(options, create_only=False, if_match=stored.info.hash)
    raise Conflict(
        f"{printable(file)} kept changing while it was read: what is stored may be of no one moment.",
        path=format_path(where),
    )


def _destination(store: FileStore, file: str, path: str, fork: str | None) -> Path:
    """The path of the file itself, when the argument names the directory that it goes into."""
    where = parse_path(path)
    if file == "-":
        return where
    name = os.path.basename(os.path.realpath(file)) if not os.path.islink(file) else os.path.basename(file)
    if path.endswith("/") or not where:
        return parse_path(f"{format_path(where)}/{name}")
    try:
        info = store.stat(where, store.pin(ReadPoint(fork=fork), where) if fork is not None else None)
    except NotFound:
        return where
    if info.kind is EntryKind.DIRECTORY:
        return parse_path(f"{format_path(info.path)}/{name}")
    return where


def _hash_text(text: str | None) -> str | None:
    return text.strip('"').lower() if text is not None else None
