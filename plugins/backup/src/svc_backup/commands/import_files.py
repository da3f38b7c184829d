"""``svc import``: exports and patches come into a database."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from svc.errors import Forbidden, InvalidInput, NotFound, PreconditionFailed, UsageError
from svc.plugin import Confidential, Database, declared_system_paths
from svc_backup.chains import ordered
from svc_backup.commands.options import PLUGIN_ID, quiet_option
from svc_backup.commands.output import Progress, print_report, progress_bar
from svc_backup.format import ImportResult, IncomingFile, IncomingLimits
from svc_backup.importing import ImportOptions, import_incoming, open_incoming, require_base
from svc_backup.models import PromoteBody
from svc_backup.operations import promote_version
from svc_backup.promoting import promote_version as promote_root
from svc_backup.reports import import_lines, import_report
from svc_backup.restoring import restored_database
from svc_cli import (
    Source,
    json_option,
    print_json,
    require_root_key,
    root_key_options,
    source_options,
    terminal_text,
)

__all__ = ["import_files"]

_UNLIMITED = 1 << 40


class _Request(Confidential, frozen=True):
    shown = ("files", "promote", "force")

    files: tuple[str, ...]
    promote: bool
    force: bool
    limits: IncomingLimits
    root_key: str | None
    auth: str | None
    progress: Progress


@click.command("import", short_help="Takes in exports and patches.")
@click.argument("files", nargs=-1, metavar="[FILES]...")
@click.option("--file", "more", multiple=True, metavar="FILE", help="An export or a patch.")
@click.option("--promote", is_flag=True, help="Make the imported version HEAD.")
@click.option("--force", is_flag=True, help="Apply a patch although HEAD is not its base.")
@click.option("--unlimited", is_flag=True, help="Take a file whatever its content unpacks to.")
@root_key_options("system data and snapshots too.")
@quiet_option
@json_option
@source_options
def import_files(
    *,
    source: Source,
    files: tuple[str, ...],
    more: tuple[str, ...],
    promote: bool,
    force: bool,
    unlimited: bool,
    root_key: str | None,
    auth: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Takes exports and patches into a database; each is verified wholly before anything of it is taken.

    HEAD stays where it is without --promote. Several files, in any order, are an export with the patches that
    follow it. A database that is missing is made, and HEAD is then what the files make.
    """
    named = (*more, *files)
    if not named:
        raise UsageError("A file is needed: svc import -D DATABASE FILE...")
    with progress_bar(wanted=not (quiet or as_json)) as show:
        limits = IncomingLimits(expansion=_UNLIMITED) if unlimited else IncomingLimits()
        request = _Request(named, promote, force, limits, root_key, auth, show)
        if source.is_remote:
            results = _send(source, request, unlimited=unlimited)
        elif os.path.lexists(source.database):
            with source.open_file(PLUGIN_ID) as opened:
                results = _import(opened, request)
        else:
            name = source.require_file("a server's database is there")
            with restored_database(Path(name), PLUGIN_ID) as opened:
                results = _import(opened, replace(request, promote=True))
    result = _together(results)
    for warning in result.warnings:
        click.echo(f"svc: {terminal_text(warning)}", err=True)
    if as_json:
        report = msgspec.to_builtins(import_report(result))
        if len(results) > 1:
            report["files"] = [import_report(one) for one in results]
        print_json(report)
    elif not quiet:
        print_report(import_lines(result))


def _send(source: Source, request: _Request, *, unlimited: bool) -> list[ImportResult]:
    from svc_backup.commands.remote import Sending

    if request.root_key is not None:
        source.require_file("system data come into it with the root key, not over HTTP")
    if unlimited:
        source.require_file("what an import may unpack to is a setting of the server")
    with contextlib.ExitStack() as stack:
        opened = [_open_name(name, stack) for name in request.files]
        client = stack.enter_context(contextlib.closing(source.connect()))
        if len(opened) == 1:
            sending = Sending(client, request.promote, request.force, request.progress)
            return [sending.send(opened[0])]
        files = {
            stack.enter_context(open_incoming(None, descriptor, name, request.limits)): descriptor
            for name, descriptor in zip(request.files, opened, strict=True)
        }
        made = {file.root for file in files}
        first = next((file.base for file in files if file.base is not None and file.base not in made), b"")
        order = ordered(list(files), first)
        results = []
        for number, file in enumerate(order):
            # What a later file builds on is in the server already, though it is not HEAD there.
            sending = Sending(client, False, request.force or number > 0, request.progress)
            results.append(sending.send(files[file]))
        for result in results if request.promote else ():
            client.call(promote_version, PromoteBody(result.version.hex()))
    if request.promote:
        results[-1] = replace(results[-1], head_promoted=True)
    return results


def _import(database: Database, request: _Request) -> list[ImportResult]:
    if request.root_key is not None:
        require_root_key(database, request.root_key, request.auth)
    options = ImportOptions(
        request.promote and len(request.files) == 1,
        request.force,
        None if request.root_key is None else declared_system_paths(),
        progress=request.progress,
    )
    with contextlib.ExitStack() as stack:
        opened = [_open(database, name, request.limits, stack) for name in request.files]
        if len(opened) == 1:
            return [import_incoming(database, opened[0], options)]
        files = ordered(opened, database.head().root)
        return _import_chain(database, files, request.promote, options)


def _import_chain(
    database: Database, files: Sequence[IncomingFile], promote: bool, options: ImportOptions
) -> list[ImportResult]:
    """Takes all files first and moves HEAD only when every one of them has proved good."""
    head = present = database.head().root
    results = []
    for file in files:
        results.append(import_incoming(database, file, options, present=present))
        present = file.root
    if not promote:
        return results
    for result in results:
        try:
            promote_root(database, result.version, expected=head)
        except PreconditionFailed:
            if result.base is not None:
                require_base(files[0].header, database.head().root, force=False)
            raise
        head = result.version
    results[-1] = replace(results[-1], head_promoted=True)
    return results


def _open(database: Database, name: str, limits: IncomingLimits, stack: contextlib.ExitStack) -> IncomingFile:
    return stack.enter_context(open_incoming(database, _open_name(name, stack), name, limits))


def _open_name(name: str, stack: contextlib.ExitStack) -> int:
    if not name:
        raise InvalidInput("The name of a file to import is empty.", field="file")
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _error(error, name) from error
    except ValueError as error:
        raise InvalidInput("A file's name may not hold NUL.", field="file") from error
    stack.callback(os.close, descriptor)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise InvalidInput(f"{name} is not a file.", field="file")
    return descriptor


def _error(error: OSError, name: str) -> Exception:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"There is no file {name}.", field="file")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Forbidden(f"There is no permission to read {name}.", field="file")
    return InvalidInput(f"{name} cannot be opened: {(error.strerror or 'unknown reason').lower()}.")


def _together(results: Sequence[ImportResult]) -> ImportResult:
    """One report for several files: sums, and the version that they lead to."""
    last = results[-1]
    if len(results) == 1:
        return last
    sums: dict[str, Any] = {
        name: sum(getattr(one, name) for one in results)
        for name in (
            "entries",
            "new_entries",
            "chunks",
            "files",
            "directories",
            "deletions",
            "snapshots",
            "system_entries",
        )
    }
    warnings = tuple(dict.fromkeys(warning for one in results for warning in one.warnings))
    return replace(last, kind="chain", base=results[0].base, warnings=warnings, **sums)
