"""``svc gc`` and ``svc compact``."""

from __future__ import annotations

import time
from typing import Any

import click
from msgspec import Struct

from svc.errors import ServiceUnavailable, UsageError
from svc.plugin import (
    Database,
    Source,
    counted,
    database_option,
    json_option,
    print_json,
    progress_bar,
    source_options,
    terminal_text,
)

__all__ = ["compact", "gc"]

_PLUGIN_ID = "task.gc"
_POLL_SECONDS = 0.2


class _Progress(Struct):
    indexed_count: int
    total_count: int


class _Report(Struct):
    versions_scanned: int
    live_entries: int
    garbage_entries: int
    reclaimed_bytes: int
    duration_ms: int
    dry_run: bool
    allocated_before: int | None
    allocated_after: int | None
    waiting: str | None
    warning: str | None
    snapshot: str | None = None
    snapshot_is_new: bool = True


class _Going(Struct, tag_field="status", tag="pending"):
    id: str
    progress: _Progress | None = None


class _Running(_Going, tag="running"):
    pass


class _Completed(Struct, tag_field="status", tag="completed"):
    result: _Report


class _Failed(Struct, tag_field="status", tag="failed"):
    error: str | None


class _Cancelled(_Failed, tag="cancelled"):
    pass


_Task = _Going | _Running | _Completed | _Failed | _Cancelled


@click.command()
@click.option("--dry-run", is_flag=True, help="Only count, change nothing.")
@click.option(
    "--keep-days",
    type=click.FloatRange(0, 100_000),
    metavar="N",
    help="Keep the versions of the last N days, also those without a name.",
)
@source_options
@json_option
def gc(*, dry_run: bool, keep_days: float | None, source: Source, as_json: bool) -> None:
    """Collects garbage: gives back the space of what no version needs any more.

    The present state, snapshots and forks stay, with what they need; other versions are gone afterwards. A
    snapshot of the present state is made before, unless the lifecycle settings forbid it. Readers and writers
    go on meanwhile.
    """
    with source.open(_PLUGIN_ID, read_only=dry_run and not source.is_remote) as opened:
        if isinstance(opened, Database):
            report = _collect_here(opened, dry_run, keep_days)
        else:
            report = _collect_there(opened, dry_run, keep_days)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _collect_here(database: Database, dry_run: bool, keep_days: float | None) -> dict[str, Any]:
    from svc_task_gc.collecting import collect_garbage
    from svc_task_gc.settings import settings_of

    with progress_bar("Collecting") as bar:
        return collect_garbage(
            database,
            settings_of(database),
            dry_run=dry_run,
            keep_days=keep_days,
            progress=lambda _phase, done, total: bar(min(done, total), total) if total else None,
        )


def _collect_there(client: Any, dry_run: bool, keep_days: float | None) -> dict[str, Any]:
    """Lets the server run the task, which may take longer than any request, and waits for its end."""
    send = client.transport.document
    args = {"dry_run": dry_run, "keep_days": keep_days}
    # A second time finds the task of the first.
    task = send("POST", "/system/tasks/gc", _Task, value=args, repeatable=True)
    with progress_bar("Collecting") as bar:
        while task["status"] in ("pending", "running"):
            progress = task.get("progress")
            if progress and progress["total_count"]:
                bar(min(progress["indexed_count"], progress["total_count"]), progress["total_count"])
            time.sleep(_POLL_SECONDS)
            task = send("GET", f"/system/tasks/{task['id']}", _Task)
    if task["status"] != "completed":
        raise ServiceUnavailable(
            f"The collection is {task['status']}: {task.get('error') or 'somebody ended it'}"
        )
    report: dict[str, Any] = task["result"]
    return report


def _show(report: dict[str, Any]) -> None:
    verb = "would be" if report["dry_run"] else "were"
    click.echo(
        f"{counted(report['versions_scanned'], 'version')} looked at, "
        f"{counted(report['live_entries'], 'object')} needed, {report['garbage_entries']:,} not."
    )
    seconds = report["duration_ms"] / 1000
    click.echo(f"{report['reclaimed_bytes']:,} bytes {verb} reclaimed in {seconds:.1f} s.")
    before, after = report["allocated_before"], report["allocated_after"]
    if before is not None and after is not None and not report["dry_run"]:
        click.echo(f"The file takes {after:,} bytes on its disk; before it took {before:,}.")
    if report.get("snapshot"):
        is_new = report.get("snapshot_is_new", True)
        made = "" if is_new else ", which an earlier collection made: nothing has changed since"
        click.echo(terminal_text(f"The state before is the snapshot {report['snapshot']}{made}."))
    for name in ("waiting", "warning"):
        if report[name]:
            click.echo(terminal_text(report[name]), err=True)


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
