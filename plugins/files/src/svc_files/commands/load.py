"""``svc load``: a directory tree into the database, in few commits."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace

import click
from click.core import ParameterSource
from msgspec import Struct

from svc.errors import SvcError
from svc.plugin import Path, format_path, parse_path
from svc_cli import Source, source_options
from svc_files.client import FileStore, Importer, ImportOptions, ReadPoint
from svc_files.commands.exclusion import Exclusion, exclude_option
from svc_files.commands.interruption import INTERRUPTED_EXIT_CODE, Interrupted, Interruption
from svc_files.commands.loader import Loader, LoadOptions, PlanImporter, resolve_base
from svc_files.commands.options import charset_of, fork_option, jobs_option, json_option, open_store
from svc_files.commands.output import ProgressLine, count_of, json_line, printable
from svc_files.commands.report import TransferReport
from svc_files.commands.source_tree import SourceTree, count_files
from svc_files.errors import Incomplete

__all__ = ["load"]

_NICENESS = 10
_CONFIGURATION = (".config", ".svc-config")


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
@click.argument("path", default="/")
@click.option("--keep-times", is_flag=True, help="Store the files' own modification times.")
@click.option("--delete", "mirror", is_flag=True, help="Remove from PATH what DIR does not have.")
@click.option("--checksum", is_flag=True, help="Compare contents, also where size and time are equal.")
@click.option("--encoding", callback=charset_of, help="Encoding of texts that are not UTF-8: their charset.")
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
    encoding: str | None,
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
    options = LoadOptions(keep_times, mirror, checksum, encoding)
    request = _Request(directory, parse_path(path), options, jobs, excluded, fork, dry_run, as_json, quiet)
    with (
        contextlib.nullcontext() if source.is_remote else _giving_way(),
        _target(source, dry_run=dry_run) as (target, may_write),
        open_store(target, writable=may_write, create=may_write) as store,
    ):
        report = _run(store, request)
    if as_json:
        json_line(
            report.as_json(directory=printable(directory), path=format_path(request.path), dry_run=dry_run)
        )
    elif not quiet and (report.failure is None or report.has_done_something):
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
def _target(source: Source, *, dry_run: bool) -> Iterator[tuple[Source, bool]]:
    """Yields where to load to, and whether to write there: a dry run into nothing gets an empty database."""
    if not dry_run or "://" in source.database or os.path.lexists(source.database):
        yield source, not dry_run
        return
    with tempfile.TemporaryDirectory(prefix="svc-load-") as directory:
        yield replace(source, database=os.path.join(directory, "empty.svcdb")), True


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
    point = ReadPoint(fork=request.fork)
    version = store.pin(point, request.path)
    base, known = resolve_base(store, version, request.path)
    if not request.quiet and known is not None and _is_default_path() and _holds_files(store, version):
        name = printable(os.path.basename(os.path.abspath(request.directory)))
        click.echo(
            f"svc: what is in {printable(request.directory)} goes beside what the root holds; "
            f"'svc load {printable(request.directory)} /{name}' makes a directory of it.",
            err=True,
        )
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
    report.version = version if report.version is None else store.pin(point, request.path)
    return report


def _holds_files(store: FileStore, version: str) -> bool:
    return any(child.path[-1] not in _CONFIGURATION for child in store.children((), version))


def _is_default_path() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source("path") is ParameterSource.DEFAULT


def _importer(store: FileStore, request: _Request, report: TransferReport) -> Importer:
    if request.dry_run:
        return PlanImporter(report, (lambda line: None) if request.as_json else click.echo)
    message = f"load {printable(request.directory)}"
    return store.importer(
        ImportOptions(request.jobs, request.options.keep_times, message, request.fork), report
    )
