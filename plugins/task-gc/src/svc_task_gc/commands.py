"""``svc gc`` and ``svc compact``."""

from __future__ import annotations

import sys

import click
import msgspec
from svc_tasks.operations import follow_task, run_task

from svc.errors import ServiceUnavailable, UsageError
from svc_cli import (
    Source,
    counted,
    database_option,
    json_option,
    print_json,
    progress_bar,
    source_options,
    terminal_text,
    time_text,
)
from svc_task_gc.models import MOST_DAYS, GcPreviewQuery, GcReport
from svc_task_gc.operations import preview_collection

__all__ = ["compact", "gc"]


@click.command()
@click.option("--dry-run", is_flag=True, help="Only count, change nothing.")
@click.option(
    "--keep-days",
    type=click.FloatRange(0, MOST_DAYS),
    metavar="N",
    help="Keep the versions of the last N days, also those without a name.",
)
@click.option("--yes", is_flag=True, help="Don't ask at a terminal.")
@source_options
@json_option
def gc(*, dry_run: bool, keep_days: float | None, yes: bool, source: Source, as_json: bool) -> None:
    """Collects garbage: gives back the space of what no version needs any more.

    The present state, snapshots and forks stay, with what they need; other versions are gone afterwards. It
    says before how many, and asks at a terminal. A snapshot of the present state is made before, unless the
    lifecycle settings forbid it. Readers and writers go on meanwhile.
    """
    _announce(source, keep_days, must_ask=not (dry_run or yes))
    report = (_collect_there if source.is_remote else _collect_here)(source, dry_run, keep_days)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _announce(source: Source, keep_days: float | None, *, must_ask: bool) -> None:
    """Says which versions go, on standard error; ends the command where somebody at a terminal says no."""
    coming = source.call(preview_collection, GcPreviewQuery(keep_days))
    if not coming.versions:
        return
    oldest = "" if coming.since is None else f", the oldest of {time_text(coming.since)}"
    click.echo(
        f"{counted(coming.versions, 'version')} can't be read afterwards{oldest}, "
        "but those that a snapshot or fork has.",
        err=True,
    )
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if must_ask and is_terminal and not click.confirm("Go on?", err=True):
        sys.exit(1)


def _collect_here(source: Source, dry_run: bool, keep_days: float | None) -> GcReport:
    from svc_task_gc.collecting import collect_garbage
    from svc_task_gc.settings import settings_of

    said = False
    with source.open_file("task.gc", read_only=dry_run) as database, progress_bar("Collecting") as bar:

        def tell(phase: str, done: int, total: int) -> None:
            nonlocal said
            if phase == "queue" and not said:
                said = True
                click.echo("svc: another collection is at work; this one begins when it has ended.", err=True)
            if total:
                bar(min(done, total), total)

        report = collect_garbage(
            database,
            settings_of(database),
            dry_run=dry_run,
            keep_days=keep_days,
            progress=tell,
            waits=True,
        )
    return msgspec.convert(report, GcReport)


def _collect_there(source: Source, dry_run: bool, keep_days: float | None) -> GcReport:
    """Lets the server run the task, which may take longer than any request, and waits for its end."""
    with source.open_service() as service, progress_bar("Collecting") as bar:
        made = service.call(run_task, "gc", {"dry_run": dry_run, "keep_days": keep_days})
        task = follow_task(service, made.id, bar)
    if task.status != "completed":
        raise ServiceUnavailable(f"The collection is {task.status}: {task.error or 'somebody ended it'}")
    try:
        return msgspec.convert(task.result, GcReport)
    except msgspec.ValidationError:
        raise ServiceUnavailable("The server sends no report of the collection.") from None


def _show(report: GcReport) -> None:
    verb = "would be" if report.dry_run else "were"
    click.echo(
        f"{counted(report.versions_scanned, 'version')} looked at, "
        f"{counted(report.live_entries, 'object')} needed, {report.garbage_entries:,} not."
    )
    click.echo(f"{report.reclaimed_bytes:,} bytes {verb} reclaimed in {report.duration_ms / 1000:.1f} s.")
    before, after = report.allocated_before, report.allocated_after
    if before is not None and after is not None and not report.dry_run:
        click.echo(f"The file takes {after:,} bytes on its disk; before it took {before:,}.")
    if report.snapshot:
        is_new = report.snapshot_is_new
        made = "" if is_new else ", which an earlier collection made: nothing has changed since"
        click.echo(terminal_text(f"The state before is the snapshot {report.snapshot}{made}."))
    for said in (report.waiting, report.warning):
        if said:
            click.echo(terminal_text(said), err=True)


@click.command()
@database_option
@json_option
def compact(*, database: str, as_json: bool) -> None:
    """Copies a database without what its garbage takes, and puts the copy in its place.

    For a file whose file system cannot give the space of a part of it back: 'svc gc' says so. Collect before;
    nobody may have the database open, and there must be room for the copy.
    """
    from svc.plugin import compact as compact_database

    if Source(database).is_remote:
        raise UsageError("A database is compacted where its file is, while no server has it open.")
    with progress_bar("Compacting") as bar:
        report = compact_database(database, bar)
    if as_json:
        print_json(
            {
                "allocated_before": report.allocated_before,
                "allocated_after": report.allocated_after,
                "replaced": report.replaced,
            }
        )
    elif report.replaced:
        click.echo(
            f"The file takes {report.allocated_after:,} bytes on its disk; before it took "
            f"{report.allocated_before:,}."
        )
    else:
        click.echo("A copy would take no less space: the file stays as it is.")
