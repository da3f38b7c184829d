"""``svc load``: a directory tree into the database, in few commits."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import click
from msgspec import Struct

from svc.errors import SvcError
from svc.plugin import Path, Source, format_path, parse_path, source_options
from svc_files.client import FileStore, Importer, ImportOptions, ReadPoint
from svc_files.commands.exclusion import Exclusion, exclude_option
from svc_files.commands.interruption import INTERRUPTED_EXIT_CODE, Interrupted, Interruption
from svc_files.commands.loader import Loader, LoadOptions, PlanImporter, resolve_base
from svc_files.commands.options import PathText, fork_option, jobs_option, json_option, open_store
from svc_files.commands.output import ProgressLine, count_of, json_line, printable
from svc_files.commands.report import TransferReport
from svc_files.commands.source_tree import SourceTree, count_files
from svc_files.errors import Incomplete

__all__ = ["load"]

_NICENESS = 10


class _Request(Struct, frozen=True):
    directory: str
    path: Path
    options: LoadOptions
    jobs: int
    excluded: Exclusion
    fork: str | None
    dry_run: bool
    as_json: bool
    quiet: bool


@click.command(short_help="Imports a directory tree.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False), metavar="DIR")
@click.argument("path", type=PathText(), default="/")
@click.option("--keep-times", is_flag=True, help="Store the files' own modification times.")
@click.option("--delete", "mirror", is_flag=True, help="Remove from PATH what DIR does not have.")
@click.option("--checksum", is_flag=True, help="Compare contents, also where size and time are equal.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done and change nothing.")
@click.option("-q", "--quiet", is_flag=True, help="No progress bar and no summary.")
@exclude_option
@fork_option
@jobs_option
@json_option
@source_options
def load(  # noqa: PLR0913 - each is an option
    *,
    directory: str,
    path: str,
    keep_times: bool,
    mirror: bool,
    checksum: bool,
    dry_run: bool,
    quiet: bool,
    excluded: Exclusion,
    fork: str | None,
    jobs: int,
    as_json: bool,
    source: Source,
) -> None:
    """Imports the directory tree DIR at PATH, which is the root by default.

    Unchanged files cost nothing the second time. What cannot be stored is named, everything else is
    loaded, and the exit code is then 12.
    """
    options = LoadOptions(keep_times, mirror, checksum)
    request = _Request(directory, parse_path(path), options, jobs, excluded, fork, dry_run, as_json, quiet)
    with (
        contextlib.nullcontext() if source.is_remote else _giving_way(),
        open_store(source, writable=not dry_run, create=not dry_run) as store,
    ):
        report = _run(store, request)
    if as_json:
        json_line(
            report.as_json(directory=printable(directory), path=format_path(request.path), dry_run=dry_run)
        )
    elif not quiet:
        report.as_text("would load" if dry_run else "loaded", lambda line: click.echo(line, err=True))
    if report.interrupted:
        if not as_json:
            click.echo("svc: interrupted; what is counted above is committed, the rest is not.", err=True)
        click.get_current_context().exit(INTERRUPTED_EXIT_CODE)
    if report.failure is not None:
        raise report.failure
    if report.problem_count:
        raise Incomplete(
            f"{count_of(report.problem_count, 'item')} of {printable(directory)} could not be loaded."
        )


@contextlib.contextmanager
def _giving_way() -> Iterator[None]:
    """Lowers the priority of this process: a server of the same database has callers who wait."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(before, _NICENESS))
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _run(store: FileStore, request: _Request) -> TransferReport:
    version = store.pin(ReadPoint(fork=request.fork))
    base, known = resolve_base(store, version, request.path)
    tree = SourceTree(request.directory, base, store, request.excluded)
    with ProgressLine("loading", wanted=not (request.as_json or request.quiet)) as progress:
        report = TransferReport(progress, quiet_problems=request.as_json)
        if progress.is_shown:
            threading.Thread(target=lambda: progress.expect(count_files(tree.root)), daemon=True).start()
        with Interruption() as interruption:
            try:
                with _importer(store, request, report) as importer:
                    Loader(store, version, importer, tree, request.options, report, interruption).run(known)
            except Interrupted:
                report.interrupted = True
            except SvcError as error:
                report.failure = error
    # Commits that were made side by side are not heard of in their order.
    report.version = version if report.version is None else store.pin(ReadPoint(fork=request.fork))
    return report


def _importer(store: FileStore, request: _Request, report: TransferReport) -> Importer:
    if request.dry_run:
        return PlanImporter(report, (lambda line: None) if request.as_json else click.echo)
    message = f"load {printable(request.directory)}"
    return store.importer(
        ImportOptions(request.jobs, request.options.keep_times, message, request.fork), report
    )
