"""``svc cron``: list, add, enable, disable and remove schedules."""

from __future__ import annotations

import json

import click
from msgspec import UNSET

from svc.errors import InvalidInput
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
from svc_tasks.commands.arguments import arguments_option, parse_argument
from svc_tasks.models import Schedule, ScheduleChange, ShownSchedule
from svc_tasks.operations import add_schedule, change_schedule, list_schedules, remove_schedule

__all__ = ["cron"]


@click.group(short_help="Lists, adds and changes schedules of tasks.")
def cron() -> None:
    """Schedules: which tasks are started when. They stand in /.config/cron.json."""


@cron.command("list")
@source_options
@json_option
def list_(*, source: Source, as_json: bool) -> None:
    """Lists schedules, each with the next three times."""
    found = source.call(list_schedules).schedules
    if as_json:
        print_json(found)
        return
    rows = [
        (
            terminal_text(one.id),
            terminal_text(one.task_type),
            terminal_text(one.schedule),
            terminal_text(json.dumps(one.args, ensure_ascii=False) if one.args else "-"),
            _next(one),
        )
        for one in found
    ]
    print_table(rows, ("ID", "TYPE", "SCHEDULE", "ARGUMENTS", "NEXT"))


@cron.command()
@click.argument("schedule_id", metavar="ID")
@click.argument("task_type", metavar="TYPE")
@click.argument("schedule", metavar="SCHEDULE")
@arguments_option
@click.option("--disabled", is_flag=True, help="Start nothing until it is enabled.")
@click.option("--one-node", is_flag=True, help="Of a cluster, let one node start the tasks, not each.")
@source_options
@json_option
def add(
    *,
    schedule_id: str,
    task_type: str,
    schedule: str,
    arguments: tuple[str, ...],
    disabled: bool,
    one_node: bool,
    source: Source,
    as_json: bool,
) -> None:
    """Adds a schedule: tasks of TYPE whenever SCHEDULE is due, such as '30 3 * * *'."""
    wanted = Schedule(
        id=schedule_id,
        task_type=task_type,
        schedule=schedule,
        args=dict(map(parse_argument, arguments)),
        enabled=not disabled,
        runs_on="one_node" if one_node else UNSET,
    )
    _print(source.call(add_schedule, wanted), "added", as_json)


@cron.command()
@click.argument("schedule_id", metavar="ID")
@source_options
@json_option
def enable(*, schedule_id: str, source: Source, as_json: bool) -> None:
    """Lets a schedule start tasks; what it has missed is not made up for."""
    changed = source.call(change_schedule, _id(schedule_id), ScheduleChange(enabled=True))
    _print(changed, "enabled", as_json)


@cron.command()
@click.argument("schedule_id", metavar="ID")
@source_options
@json_option
def disable(*, schedule_id: str, source: Source, as_json: bool) -> None:
    """Lets a schedule start no more tasks."""
    changed = source.call(change_schedule, _id(schedule_id), ScheduleChange(enabled=False))
    _print(changed, "disabled", as_json)


@cron.command()
@click.argument("schedule_id", metavar="ID")
@source_options
@json_option
def remove(*, schedule_id: str, source: Source, as_json: bool) -> None:
    """Removes a schedule; a task that it has started goes on."""
    removed = source.call(remove_schedule, _id(schedule_id))
    print_result(removed, f"removed {terminal_text(schedule_id)}", as_json=as_json)


def _id(schedule_id: str) -> str:
    if not schedule_id:
        raise InvalidInput("The id of a schedule is not empty.", field="id")
    return schedule_id


def _print(found: ShownSchedule, done: str, as_json: bool) -> None:
    print_result(found, f"{done} {terminal_text(found.id)}; next: {_next(found)}", as_json=as_json)


def _next(found: ShownSchedule) -> str:
    if not found.enabled:
        return "disabled"
    times = ", ".join(map(time_text, found.next_runs)) or "never"
    return times if found.runs_here else f"{times} (on another node)"
