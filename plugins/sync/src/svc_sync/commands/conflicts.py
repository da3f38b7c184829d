"""``svc conflicts``: what nodes wrote without knowing of each other."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

from svc.errors import Conflict, NotFound
from svc.plugin import Path, format_path, parse_path
from svc_cli import (
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_files.api import open_files
from svc_sync import operations as op
from svc_sync.exchange.losers import place_of
from svc_sync.models import ConflictQuery, ResolveBody, ShownConflict, VersionShown

if TYPE_CHECKING:
    from svc_files.api import FileStore

__all__ = ["conflicts"]

_LARGEST_DIFF = 4 << 20


@click.group(short_help="Lists, shows and resolves conflicts of nodes.")
def conflicts() -> None:
    """Conflicts: two nodes wrote one path, and neither knew of the other. Both contents are kept."""


@conflicts.command("list")
@source_options
@json_option
def list_(*, source: Source, as_json: bool) -> None:
    """Lists the conflicts that nobody has resolved."""
    found = list(source.items(op.list_conflicts, ConflictQuery(limit=1_000)))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            terminal_text(one.path),
            one.kind,
            _words(one.winner),
            _words(one.loser),
            one.loser.version,
        )
        for one in found
    ]
    print_table(rows, ("PATH", "KIND", "WINNER", "LOSER", "VERSION"))


@conflicts.command()
@click.argument("path")
@source_options
@json_option
def show(*, path: str, source: Source, as_json: bool) -> None:
    """Shows the conflicts of a path."""
    found = _of_path(source, path)
    if as_json:
        print_json(found)
        return
    for one in found:
        click.echo(_account(one))


@conflicts.command()
@click.argument("path")
@click.option("--version", "name", metavar="VERSION", help="Which loser, where there are several.")
@source_options
def diff(*, path: str, name: str | None, source: Source) -> None:
    """Shows the lines by which what has lost differs from what stands at a path."""
    shown = _of_path(source, path)
    found = [one for one in shown if name in (None, one.loser.version)]
    if not found:
        raise NotFound("The path has no such conflict.", path=path)
    row = found[-1]
    with open_files(source) as files:
        winner = _lines(files, parse_path(row.path), row.winner)
        loser = _lines(files, place_of(parse_path(row.path), row.loser.version), row.loser)
    if winner is None or loser is None:
        click.echo(_account(row))
        return
    ends = f"{row.path} ({row.winner.kind})", f"{row.path} ({row.loser.version}, {row.loser.kind})"
    for line in difflib.unified_diff(winner, loser, *ends, lineterm=""):
        click.echo(terminal_text(line))


@conflicts.command()
@click.argument("path")
@click.option("--pick", type=click.Choice(["winner", "loser"]), default="winner", show_default=True)
@click.option("--version", "name", metavar="VERSION", help="Which loser, where there are several.")
@source_options
@json_option
def resolve(*, path: str, pick: str, name: str | None, source: Source, as_json: bool) -> None:
    """Chooses what stands at a path, on every node; the other versions are gone."""
    body = ResolveBody(pick="loser" if pick == "loser" else "winner", version=name)
    done = source.call(op.resolve_conflict, parse_path(path), body)
    print_result(done, f"resolved {terminal_text(done.path)}: the {done.picked} stands", as_json=as_json)


def _of_path(source: Source, path: str) -> list[ShownConflict]:
    wanted = format_path(parse_path(path))
    found = [one for one in source.items(op.list_conflicts, ConflictQuery(limit=1_000)) if one.path == wanted]
    if not found:
        raise NotFound("The path has no conflict.", path=wanted)
    return found


def _lines(files: FileStore, path: Path, version: VersionShown) -> list[str] | None:
    """The lines of a version: none of what is no file; None where it is too large, or is no text."""
    if version.kind != "file":
        return []
    info = files.stat(path)
    if info.size > _LARGEST_DIFF:
        return None
    if info.hash != version.hash:
        raise Conflict("The path was changed meanwhile; try again.", path=format_path(path))
    try:
        return b"".join(files.read(info)).decode().splitlines()
    except UnicodeDecodeError:
        return None


def _words(one: VersionShown) -> str:
    size = "" if one.size is None else f" of {one.size} bytes"
    return f"{one.kind}{size}, {time_text(one.updated_at)}"


def _account(one: ShownConflict) -> str:
    lines = [f"{terminal_text(one.path)}: {one.kind}"]
    for name, version in (("winner", one.winner), ("loser", one.loser)):
        node = "" if version.node_id is None else f" by node {version.node_id}"
        lines.append(f"  {name:8}{_words(version)}{node}, version {version.version}")
    return "\n".join(lines)
