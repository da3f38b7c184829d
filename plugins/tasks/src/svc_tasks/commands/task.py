"""``svc task``: list, run, show, watch and cancel tasks."""

from __future__ import annotations

import json

import click
import msgspec

from svc.errors import InvalidInput, NotFound
from svc_cli import (
    Source,
    json_option,
    print_json,
    print_table,
    progress_bar,
    source_options,
    terminal_text,
    time_text,
)
from svc_tasks.commands.arguments import arguments_option, parse_argument
from svc_tasks.models import Task, TaskQuery
from svc_tasks.operations import cancel_task, follow_task, list_tasks, run_task, show_task

__all__ = ["task"]

_ID_LENGTH = 32


@click.group(short_help="Lists, runs, shows, watches and cancels tasks.")
def task() -> None:
    """Tasks: work in the background of a database. ID is a task's id, or a beginning that only one has."""


@task.command("list")
@click.option("--type", "task_type", metavar="TYPE", help="Only tasks of this type.")
@click.option(
    "--status",
    type=click.Choice(["pending", "running", "completed", "failed", "cancelled"]),
    help="Only tasks that are so.",
)
@source_options
@json_option
def list_(*, task_type: str | None, status: str | None, source: Source, as_json: bool) -> None:
    """Lists tasks, the newest first."""
    found = source.call(list_tasks, TaskQuery(task_type, status)).tasks
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one.id,
            terminal_text(one.task_type),
            one.status,
            time_text(one.created_at),
            terminal_text(_remark(one)),
        )
        for one in found
    ]
    print_table(rows, ("ID", "TYPE", "STATUS", "CREATED", ""))


@task.command()
@click.argument("task_type", metavar="TYPE")
@arguments_option
@click.option("--no-wait", is_flag=True, help="Only enqueue it; whoever runs the tasks does the rest.")
@source_options
@json_option
def run(*, task_type: str, arguments: tuple[str, ...], no_wait: bool, source: Source, as_json: bool) -> None:
    """Runs a task of TYPE and waits for its end; exits with 1 unless it is completed.

    A server runs it in its background. A file that no server has open is worked on by this command itself; an
    interrupt leaves the rest to the next one.
    """
    args = dict(map(parse_argument, arguments))
    made = source.call(run_task, task_type, args)
    found = made if no_wait else _follow(source, made, may_run=True)
    _print_end(found, as_json, waited=not no_wait)


@task.command()
@click.argument("task_id", metavar="ID")
@source_options
@json_option
def show(*, task_id: str, source: Source, as_json: bool) -> None:
    """Shows a task."""
    found = _named(source, task_id)
    if as_json:
        print_json(found)
        return
    for name, value in msgspec.to_builtins(found).items():
        if value is None or value == {}:
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name.endswith("_at"):
            shown = time_text(value)
        click.echo(f"{name + ':':<18}{terminal_text(shown)}")


@task.command()
@click.argument("task_id", metavar="ID")
@source_options
@json_option
def watch(*, task_id: str, source: Source, as_json: bool) -> None:
    """Shows how far a task is until it is over; exits with 1 unless it is completed."""
    found = _follow(source, _named(source, task_id), may_run=False)
    _print_end(found, as_json, waited=True)


@task.command()
@click.argument("task_id", metavar="ID")
@source_options
@json_option
def cancel(*, task_id: str, source: Source, as_json: bool) -> None:
    """Cancels a task: at once when it waits; one that runs ends between two of its batches."""
    found = source.call(cancel_task, _named(source, task_id).id)
    if as_json:
        print_json(found)
    elif found.status == "cancelled":
        click.echo(terminal_text(f"cancelled {found.id}"))
    else:
        click.echo(terminal_text(f"{found.id} is told to end"))


def _follow(source: Source, found: Task, *, may_run: bool) -> Task:
    with progress_bar(terminal_text(found.task_type)) as bar:
        if not source.is_remote:
            from svc_tasks.running.alone import follow_in_file

            return follow_in_file(source, found.id, bar, may_run=may_run)
        with source.open_service() as service:
            return follow_task(service, found.id, bar)


def _print_end(found: Task, as_json: bool, *, waited: bool) -> None:
    if as_json:
        print_json(found)
    else:
        remark = _remark(found)
        click.echo(terminal_text(f"{found.id} {found.status}{': ' + remark if remark else ''}"))
    if waited and found.status != "completed":
        raise click.exceptions.Exit(1)


def _remark(found: Task) -> str:
    if found.error is not None:
        return found.error
    progress = found.progress
    if progress:
        words = [f"{progress.progress:.0%}"]
        if progress.eta_ms is not None:
            words.append(f"{progress.eta_ms / 1000:.0f} s left")
        if progress.message:
            words.append(progress.message)
        return ", ".join(words)
    if found.result:
        return json.dumps(found.result, ensure_ascii=False)
    return ""


def _named(source: Source, task_id: str) -> Task:
    if len(task_id) >= _ID_LENGTH:
        return source.call(show_task, task_id)
    found = [one for one in source.call(list_tasks).tasks if one.id.startswith(task_id)]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} tasks have an id that begins with {task_id!r}.", field="id")
    if not found:
        raise NotFound(f"There is no task {task_id!r}.")
    return found[0]
