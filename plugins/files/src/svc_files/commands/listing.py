"""``svc ls``: what a directory holds, or what matches a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from svc.errors import NotFound
from svc.plugin import EntryKind, Path, format_path, parse_path
from svc_cli import Source, source_options, terminal_text, time_text
from svc_files.client import FileInfo, FileStore, ReadPoint
from svc_files.commands.options import json_option, open_store, read_point_options
from svc_files.commands.output import count_of, json_line, size_text
from svc_files.globs import Glob

__all__ = ["ls"]

_WILD = frozenset("*?[")
_TIME_WIDTH = 19
_MARKS = {EntryKind.FILE: "-", EntryKind.DIRECTORY: "d", EntryKind.SYMLINK: "l"}


@click.command(short_help="Lists a directory, or what matches a pattern.")
@click.argument("path", default="/")
@click.option("-l", "--long", "long_form", is_flag=True, help="Show type, size, time and media type.")
@click.option("-R", "--recursive", is_flag=True, help="List everything below, with full paths.")
@click.option("-d", "--directory", "itself", is_flag=True, help="List a directory itself, not what it holds.")
@click.option("--bytes", "in_bytes", is_flag=True, help="Show sizes in bytes.")
@read_point_options
@json_option
@source_options
def ls(
    *,
    path: str,
    long_form: bool,
    recursive: bool,
    itself: bool,
    in_bytes: bool,
    point: ReadPoint,
    as_json: bool,
    source: Source,
) -> None:
    """Lists PATH: a directory, a file, or a pattern with *, ?, [...] and ** (quote it for the shell).

    With --json, one object a line: the members of a listing's item over HTTP.
    """
    with open_store(source) as store:
        version = store.pin(point, parse_path(path))
        relative_to, infos = _selected(store, version, path, recursive, itself)
        for info in infos:
            if as_json:
                json_line(info.as_json())
            else:
                name = _shown_name(info, relative_to)
                click.echo(terminal_text(_long_line(info, name, in_bytes) if long_form else name))


def _selected(
    store: FileStore, version: str, path: str, recursive: bool, itself: bool
) -> tuple[Path | None, Iterable[FileInfo]]:
    """What to list, and the directory that names are shown relative to; None shows full paths."""
    try:
        info = store.stat(parse_path(path), version)
    except NotFound:
        if not _WILD.intersection(path):
            info = store.stat(parse_path(path), version, follow=False)
            return None, [info]
        found = _matching(store, version, parse_path(path))
        first = next(found, None)
        if first is None:
            raise NotFound("Nothing matches this pattern.", path=path) from None
        return None, _chain(first, found, store, version, recursive)
    if info.kind is not EntryKind.DIRECTORY or itself:
        return None, [info]
    if recursive:
        return None, _below(store, version, info.path)
    return info.path, store.children(info.path, version)


def _chain(
    first: FileInfo, rest: Iterator[FileInfo], store: FileStore, version: str, recursive: bool
) -> Iterator[FileInfo]:
    yield first
    if recursive and first.kind is EntryKind.DIRECTORY:
        yield from _below(store, version, first.path)
    for info in rest:
        yield info
        if recursive and info.kind is EntryKind.DIRECTORY:
            yield from _below(store, version, info.path)


def _below(store: FileStore, version: str, directory: Path) -> Iterator[FileInfo]:
    waiting = [store.children(directory, version)]
    while waiting:
        info = next(waiting[-1], None)
        if info is None:
            waiting.pop()
            continue
        yield info
        if info.kind is EntryKind.DIRECTORY:
            waiting.append(store.children(info.path, version))


def _matching(store: FileStore, version: str, pattern: Path) -> Iterator[FileInfo]:
    """The entries whose full path a pattern fits; directories that cannot hold one are not read."""
    literal = 0
    while literal < len(pattern) and not _WILD.intersection(pattern[literal]):
        literal += 1
    try:
        base = store.stat(pattern[:literal], version)
    except NotFound:
        return
    if base.kind is EntryKind.DIRECTORY:
        yield from _matching_below(store, version, base.path, pattern[literal:])


def _matching_below(store: FileStore, version: str, directory: Path, pattern: Path) -> Iterator[FileInfo]:
    if "**" in pattern:
        # From the first ** on everything below is looked at, once, against the rest of the pattern.
        at = pattern.index("**")
        if at == 0:
            glob = Glob("/" + "/".join(pattern))
            for info in _below(store, version, directory):
                if glob.matches(info.path[len(directory) :], 0):
                    yield info
            return
    name = Glob(pattern[0])
    for child in store.children(directory, version):
        if not name.matches((child.name,), 0):
            continue
        if len(pattern) == 1:
            yield child
        elif child.kind is EntryKind.DIRECTORY:
            yield from _matching_below(store, version, child.path, pattern[1:])


def _shown_name(info: FileInfo, relative_to: Path | None) -> str:
    name = info.name if relative_to is not None and info.path else format_path(info.path)
    if info.kind is EntryKind.DIRECTORY:
        return name if name.endswith("/") else name + "/"
    if info.kind is EntryKind.SYMLINK:
        return f"{name} -> {info.target}"
    return name


def _long_line(info: FileInfo, name: str, in_bytes: bool) -> str:
    if not info.is_complete:
        size, when = "-", "-"
    else:
        size, when = str(info.size) if in_bytes else size_text(info.size), time_text(info.updated_ms)
    about = info.content_type or ""
    if info.kind is EntryKind.DIRECTORY and info.file_count is not None:
        about = count_of(info.file_count, "file")
    width = 15 if in_bytes else 6
    return f"{_MARKS[info.kind]}  {size:>{width}}  {when:<{_TIME_WIDTH}}  {about:<28}  {name}"
