"""``svc dump``: a directory tree out of the database, onto the disk."""

from __future__ import annotations

from contextlib import closing

import click
from msgspec import Struct

from svc.errors import Conflict, SvcError
from svc.plugin import EntryKind, Path, format_path, parse_path
from svc_cli import Source, source_options
from svc_files.client import FileStore, ReadPoint
from svc_files.commands.dumper import Dumper, DumpOptions
from svc_files.commands.exclusion import Exclusion, exclude_option
from svc_files.commands.interruption import INTERRUPTED_EXIT_CODE, Interrupted, Interruption
from svc_files.commands.options import (
    jobs_option,
    json_option,
    open_store,
    read_point_options,
)
from svc_files.commands.output import ProgressLine, count_of, json_line, printable
from svc_files.commands.report import TransferReport
from svc_files.commands.target_directory import Existing, TargetDirectory
from svc_files.errors import Incomplete

__all__ = ["dump"]


class _Request(Struct, frozen=True):
    directory: str
    path: Path
    point: ReadPoint
    existing: Existing | None
    sparse: bool
    options: DumpOptions
    as_json: bool
    quiet: bool


@click.command(short_help="Writes a directory tree onto the disk.")
@click.argument("directory", type=click.Path(file_okay=False), metavar="DIR")
@click.argument("path", default="/")
@click.option("--keep-times", is_flag=True, help="Set modification times to those in the database.")
@click.option("--merge", is_flag=True, help="Write into a DIR that is not empty; keep what differs there.")
@click.option("--force", is_flag=True, help="Write into a DIR that is not empty; replace what differs there.")
@click.option("--sparse", is_flag=True, help="Write blocks of zeros as holes, which take no room.")
@click.option("-q", "--quiet", is_flag=True, help="No progress bar and no summary.")
@exclude_option
@jobs_option
@read_point_options
@json_option
@source_options
def dump(  # noqa: PLR0913 - each is an option
    *,
    directory: str,
    path: str,
    keep_times: bool,
    merge: bool,
    force: bool,
    sparse: bool,
    quiet: bool,
    excluded: Exclusion,
    jobs: int,
    point: ReadPoint,
    as_json: bool,
    source: Source,
) -> None:
    """Writes the directory tree at PATH, which is the root by default, into DIR.

    Every file is compared with its content hash and appears whole or not at all. What cannot be
    written is named, everything else is written, and the exit code is then 12.
    """
    existing = Existing.REPLACE if force else Existing.KEEP if merge else None
    options = DumpOptions(jobs, keep_times, existing is not None, excluded)
    request = _Request(directory, parse_path(path), point, existing, sparse, options, as_json, quiet)
    with open_store(source) as store:
        report = _run(store, request)
    if as_json:
        json_line(report.as_json(directory=printable(directory), path=format_path(request.path)))
    elif not quiet:
        report.as_text("wrote", lambda line: click.echo(line, err=True))
    if report.interrupted:
        if not as_json:
            click.echo("svc: interrupted; --merge goes on from here.", err=True)
        click.get_current_context().exit(INTERRUPTED_EXIT_CODE)
    if report.failure is not None:
        raise report.failure
    if report.problem_count:
        raise Incomplete(
            f"{count_of(report.problem_count, 'item')} could not be written to {printable(directory)}."
        )


def _run(store: FileStore, request: _Request) -> TransferReport:
    version = store.pin(request.point, request.path)
    base = store.stat(request.path, version)
    if base.kind is not EntryKind.DIRECTORY:
        raise Conflict("A file stands at this path; svc get writes a file.", path=format_path(request.path))
    existing = request.existing or Existing.KEEP
    with closing(TargetDirectory(request.directory, existing, sparse=request.sparse)) as directory:
        if request.existing is None and not directory.is_empty():
            raise Conflict(f"{printable(request.directory)} is not empty; --merge or --force writes into it.")
        with ProgressLine("writing", wanted=not (request.as_json or request.quiet)) as progress:
            report = TransferReport(progress, quiet_problems=request.as_json)
            report.version = version
            if base.file_count is not None:
                progress.expect(base.file_count)
            with Interruption() as interruption:
                try:
                    Dumper(store, version, base.path, directory, request.options, report, interruption).run()
                except Interrupted:
                    report.interrupted = True
                except SvcError as error:
                    report.failure = error
    return report
