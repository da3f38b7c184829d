"""``svc rm``: entries out of the present state; earlier versions keep them."""

from __future__ import annotations

import click

from svc.errors import NotFound, UsageError
from svc.plugin import Path, format_path, parse_path
from svc_cli import Source, source_options
from svc_files.client import FileStore, ReadPoint
from svc_files.commands.options import fork_option, json_option, open_store
from svc_files.commands.output import count_of, json_line
from svc_files.models import DeleteOperation

__all__ = ["rm"]


@click.command(short_help="Removes files, links and directories.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("-r", "--recursive", is_flag=True, help="Remove directories with everything below them.")
@click.option("-f", "--force", is_flag=True, help="It is no error when a PATH is not there.")
@click.option("--if-match", metavar="HASH", help="Remove only a file with this content hash (one PATH).")
@fork_option
@json_option
@source_options
def rm(
    *,
    paths: tuple[str, ...],
    recursive: bool,
    force: bool,
    if_match: str | None,
    fork: str | None,
    as_json: bool,
    source: Source,
) -> None:
    """Removes the files, links or directories at PATH..., all in one commit.

    A link is removed, not what it leads to. Nothing is removed when one of the paths cannot be.
    """
    wanted = list(dict.fromkeys(parse_path(path) for path in paths))
    if () in wanted:
        raise UsageError("The root directory cannot be removed; name what it holds.")
    if if_match is not None and len(wanted) != 1:
        raise UsageError("--if-match needs exactly one PATH.")
    with open_store(source, writable=True) as store:
        if force:
            present = store.pin(ReadPoint(fork=fork), wanted[0])
            wanted = [path for path in wanted if _is_there(store, path, present)]
        version = None
        if wanted:
            tag = if_match.strip('"').lower() if if_match else None
            removals = [
                DeleteOperation(path=format_path(path), recursive=recursive, if_match=tag) for path in wanted
            ]
            version = store.batch(removals, fork=fork).version
    if as_json:
        json_line(
            {"deleted": bool(wanted), "paths": [format_path(path) for path in wanted], "version": version}
        )
    else:
        click.echo(f"removed {count_of(len(wanted), 'path')}")


def _is_there(store: FileStore, path: Path, version: str) -> bool:
    try:
        store.stat(path, version, follow=False)
    except NotFound:
        return False
    return True
