"""``svc mv``, ``cp``, ``mkdir`` and ``ln``: changes inside the database, each in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from svc.errors import AlreadyExists, Conflict, NotFound, UsageError
from svc.plugin import EntryKind, Path, format_path, parse_path
from svc_cli import Source, source_options, terminal_text
from svc_files.client import FileStore, ReadPoint
from svc_files.commands.options import fork_option, json_option, open_store
from svc_files.commands.output import count_of, json_line
from svc_files.models import (
    AnyOperation,
    BatchResult,
    CopyOperation,
    LinkOperation,
    MakeDirectoryOperation,
    MoveOperation,
)

__all__ = ["cp", "ln", "mkdir", "mv"]

_sources = click.argument("sources", metavar="SRC...", nargs=-1, required=True)
_destination = click.argument("destination", metavar="DST")
_force = click.option("-f", "--force", is_flag=True, help="Replace files and links that stand there.")


@click.command(short_help="Moves or renames files, links and directories.")
@_sources
@_destination
@_force
@fork_option
@json_option
@source_options
def mv(
    *,
    sources: tuple[str, ...],
    destination: str,
    force: bool,
    fork: str | None,
    as_json: bool,
    source: Source,
) -> None:
    """Moves SRC to DST, or each SRC into the directory DST, all in one commit.

    A DST that is a directory, or ends in a slash, takes what is moved under its own name. Of a link the link
    itself is moved.
    """

    def move(path: str, to: str) -> AnyOperation:
        return MoveOperation(path=path, to=to, overwrite=force)

    _relocate(source, sources, destination, fork, as_json, move, "moved")


@click.command(short_help="Copies files, links and directories.")
@_sources
@_destination
@_force
@fork_option
@json_option
@source_options
def cp(
    *,
    sources: tuple[str, ...],
    destination: str,
    force: bool,
    fork: str | None,
    as_json: bool,
    source: Source,
) -> None:
    """Copies SRC to DST, or each SRC into the directory DST, all in one commit.

    A DST that is a directory, or ends in a slash, takes what is copied under its own name. Directories are
    copied with everything below them; no content is stored twice. Of a link the link itself is copied.
    """

    def copy(path: str, to: str) -> AnyOperation:
        return CopyOperation(path=path, to=to, overwrite=force)

    _relocate(source, sources, destination, fork, as_json, copy, "copied")


@click.command(short_help="Makes directories.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("-p", "--parents", "exist_ok", is_flag=True, help="It is no error when PATH is a directory.")
@fork_option
@json_option
@source_options
def mkdir(*, paths: tuple[str, ...], exist_ok: bool, fork: str | None, as_json: bool, source: Source) -> None:
    """Makes the directories PATH... and the directories above them, all in one commit."""
    wanted = list(dict.fromkeys(format_path(parse_path(path)) for path in paths))
    with open_store(source, writable=True) as store:
        made = store.batch(
            [MakeDirectoryOperation(path=path, exist_ok=exist_ok) for path in wanted], fork=fork
        )
    _say(made, "made", "directory", as_json)


@click.command(short_help="Makes a symbolic link.")
@click.argument("target")
@click.argument("path")
@click.option("-f", "--force", is_flag=True, help="Replace a file or link that stands at PATH.")
@fork_option
@json_option
@source_options
def ln(*, target: str, path: str, force: bool, fork: str | None, as_json: bool, source: Source) -> None:
    """Makes a symbolic link at PATH that leads to TARGET, a path of the database; it need not be there.

    A PATH that is a directory, or ends in a slash, takes the link under the name of TARGET.
    """
    leads_to = parse_path(target)
    with open_store(source, writable=True) as store:
        version = store.pin(ReadPoint(fork=fork), parse_path(path))
        [where] = _targets(store, version, [leads_to], path)
        if not force and _kind(store, version, where) is not None:
            raise AlreadyExists("Something stands at this path.", path=format_path(where))
        link = LinkOperation(path=format_path(where), target=format_path(leads_to))
        made = store.batch([link], fork=fork)
    if as_json:
        json_line(made)
    else:
        click.echo(terminal_text(f"linked {format_path(where)} to {format_path(leads_to)}"))


def _relocate(
    source: Source,
    sources: tuple[str, ...],
    destination: str,
    fork: str | None,
    as_json: bool,
    operation: Callable[[str, str], AnyOperation],
    verb: str,
) -> None:
    wanted = list(dict.fromkeys(parse_path(path) for path in sources))
    with open_store(source, writable=True) as store:
        version = store.pin(ReadPoint(fork=fork), parse_path(destination))
        targets = _targets(store, version, wanted, destination)
        operations = [
            operation(format_path(path), format_path(to)) for path, to in zip(wanted, targets, strict=True)
        ]
        done = store.batch(operations, fork=fork)
    _say(done, verb, "path", as_json)


def _targets(store: FileStore, version: str, sources: Sequence[Path], destination: str) -> list[Path]:
    """The path that each source gets: the destination itself, or its own name in a directory there."""
    where = parse_path(destination)
    kind = EntryKind.DIRECTORY if destination.endswith("/") else _kind(store, version, where, follow=True)
    if kind is not EntryKind.DIRECTORY:
        if len(sources) == 1:
            return [where]
        if kind is None:
            raise NotFound("There is no directory at this path.", path=format_path(where))
        raise Conflict("The destination is not a directory.", path=format_path(where))
    if () in sources:
        raise UsageError("The root directory has no name to have elsewhere; name what it holds.")
    names = [path[-1] for path in sources]
    if len(set(names)) < len(names):
        raise UsageError("Two of these have the same name; one would take the place of the other.")
    return [(*where, name) for name in names]


def _kind(store: FileStore, version: str, path: Path, *, follow: bool = False) -> EntryKind | None:
    try:
        return store.stat(path, version, follow=follow).kind
    except NotFound:
        return None


def _say(done: BatchResult, verb: str, noun: str, as_json: bool) -> None:
    if as_json:
        json_line(done)
    else:
        click.echo(f"{verb} {count_of(len(done.results), noun)}")
