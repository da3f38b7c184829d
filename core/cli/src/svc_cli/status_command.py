"""``svc status``."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from svc.operations.system import list_findings
from svc_cli.opening import boot_for_diagnosis
from svc_cli.options import json_option
from svc_cli.output import counted, finding_lines, print_json, readable_bytes, readable_time, terminal_text
from svc_cli.source import Source, source_options

if TYPE_CHECKING:
    from svc_cli.status import BackgroundStatus, DatabaseStatus, ServiceStatus

__all__ = ["status"]


@click.command()
@source_options
@json_option
@click.pass_context
def status(context: click.Context, source: Source, as_json: bool) -> None:
    """Shows who serves a database, and how that goes: workers, background process, views.

    Exits 0 when all is well, 9 when nothing can be written, 13 when something is wrong, 14 when no worker
    serves it. Through a server it shows what that finds wrong.
    """
    if source.is_remote:
        context.exit(_show_server(source, as_json))
    from svc_cli.status import gather_status

    with source.open_file(read_only=True) as opened:
        found = gather_status(opened, *boot_for_diagnosis(opened))
    if as_json:
        print_json(found)
    else:
        _print(found)
    context.exit(found.exit_code)


def _show_server(source: Source, as_json: bool) -> int:
    from svc_cli.status import condition_of

    with closing(source.connect()) as client:
        health = client.health()
        findings = tuple(client.call(list_findings).findings)
        url = client.address.url
    condition = condition_of(findings, serving=health.phase is None)
    if as_json:
        server = {"url": url, "version": health.version}
        told = {"condition": condition.value, "findings": findings}
        print_json({**told, "server": server})
    else:
        click.echo(f"{'status:':<13}{condition.value}")
        for line in finding_lines(findings):
            click.echo(f"{'':<13}{line}")
        click.echo(f"{'server:':<13}{url}, svc {terminal_text(health.version)}")
    return condition.exit_code


def _print(found: ServiceStatus) -> None:
    click.echo(f"{'status:':<13}{found.condition}")
    for line in finding_lines(found.findings):
        click.echo(f"{'':<13}{line}")
    _print_database(found.database)
    unseen = "none" if found.database.visible else "unknown: this user may not see who serves the database"
    click.echo(f"{'workers:':<13}{len(found.workers) or unseen}")
    for worker in found.workers:
        served = counted(worker.requests, "request")
        click.echo(f"{'':<13}pid {worker.pid}, up {_duration(worker.uptime_ms)}, {served}")
    _print_background(found.background)
    click.echo(f"{'views:':<13}{len(found.views) or 'none'}")
    for view in found.views:
        place = "current" if not view.behind else f"{counted(view.behind, 'commit')} behind"
        failing = f", failing since {readable_time(view.failing_since)}" if view.error is not None else ""
        click.echo(f"{'':<13}{view.name}: {place}{failing}")


def _print_database(database: DatabaseStatus) -> None:
    state = "latched" if database.latched else "writable" if database.writable else "read-only"
    if database.writable and not database.may_write:
        state += ", but not by this user"
    age = "" if database.age_ms is None else f", {_duration(database.age_ms)} ago"
    free = f"{readable_bytes(database.disk_free)} of {readable_bytes(database.disk_total)} free"
    click.echo(f"{'database:':<13}{database.path}, {readable_bytes(database.file_size)}, {state}")
    click.echo(f"{'head:':<13}commit {database.sequence}{age}")
    click.echo(f"{'version:':<13}{database.version}")
    click.echo(f"{'disk:':<13}{free}")


def _print_background(background: BackgroundStatus) -> None:
    if not background.running:
        click.echo(f"{'background:':<13}not running")
    else:
        parts = [f"pid {background.pid}"]
        if background.elected_at is not None:
            parts.append(f"since {readable_time(background.elected_at)}")
        if background.heartbeat_age_ms is not None:
            parts.append(f"heartbeat {_duration(background.heartbeat_age_ms)} ago")
        click.echo(f"{'background:':<13}{', '.join(parts)}")
    if background.standby:
        click.echo(f"{'standby:':<13}{', '.join(f'pid {pid}' for pid in background.standby)}")
    for job in background.jobs:
        state = "running" if job.running_since_ms is not None else f"every {job.interval_s:g} s"
        failed = f", failed {job.failures} times in a row" if job.failures else ""
        click.echo(f"{'':<13}job {job.name} of {job.plugin}: {state}, {job.runs} runs{failed}")
    if background.last_error is not None:
        click.echo(f"{'last error:':<13}{readable_time(background.last_error_at)}, {background.last_error}")


def _duration(milliseconds: int) -> str:
    seconds = milliseconds // 1000
    parts = [
        (seconds // 86400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "min"),
        (seconds % 60, "s"),
    ]
    first = next((place for place, (value, _) in enumerate(parts) if value), len(parts) - 1)
    return " ".join(f"{value} {unit}" for value, unit in parts[first : first + 2])
