"""``svc task``: list, run, show, watch and cancel tasks."""

from __future__ import annotations

import json

import click

from svc.errors import InvalidInput, NotFound
from svc.plugin import (
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
from svc_tasks.commands.store import Document, TaskStore, open_tasks

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
    with open_tasks(source, read_only=True) as store:
        found = store.tasks(task_type=task_type, status=status)
    if as_json:
        print_json(found)
        return
    rows: list[tuple[str, ...]] = [("ID", "TYPE", "STATUS", "CREATED", "")]
    rows += [
        (
            one["id"],
            terminal_text(one["task_type"]),
            one["status"],
            time_text(one["created_at"]),
            terminal_text(_remark(one)),
        )
        for one in found
    ]
    print_table(rows if found else [])


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
    with open_tasks(source) as store:
        made = store.run(task_type, args)
        found = made if no_wait else _follow(store, made, may_run=True)
    _print_end(found, as_json, waited=not no_wait)


@task.command()
@click.argument("task_id", metavar="ID")
@source_options
@json_option
def show(*, task_id: str, source: Source, as_json: bool) -> None:
    """Shows a task."""
    with open_tasks(source, read_only=True) as store:
        found = _named(store, task_id)
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
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
    with open_tasks(source) as store:
        found = _follow(store, _named(store, task_id), may_run=False)
    _print_end(found, as_json, waited=True)


@task.command()
@click.argument("task_id", metavar="ID")
@source_options
@json_option
def cancel(*, task_id: str, source: Source, as_json: bool) -> None:
    """Cancels a task: at once when it waits; one that runs ends between two of its batches."""
    with open_tasks(source) as store:
        found = store.cancel(_named(store, task_id)["id"])
    if as_json:
        print_json(found)
    elif found["status"] == "cancelled":
        click.echo(terminal_text(f"cancelled {found['id']}"))
    else:
        click.echo(terminal_text(f"{found['id']} is told to end"))


def _follow(store: TaskStore, found: Document, *, may_run: bool) -> Document:
    with progress_bar(terminal_text(found["task_type"])) as bar:

        def report(task: Document) -> None:
            progress = task.get("progress")
            if progress is not None and progress["total_count"]:
                bar(min(progress["indexed_count"], progress["total_count"]), progress["total_count"])

        return store.follow(found["id"], report, may_run=may_run)


def _print_end(found: Document, as_json: bool, *, waited: bool) -> None:
    if as_json:
        print_json(found)
    else:
        remark = _remark(found)
        click.echo(terminal_text(f"{found['id']} {found['status']}{': ' + remark if remark else ''}"))
    if waited and found["status"] != "completed":
        raise click.exceptions.Exit(1)


def _remark(found: Document) -> str:
    if found["error"] is not None:
        return str(found["error"])
    progress = found.get("progress")
    if progress is not None:
        words = [f"{progress['progress']:.0%}"]
        if progress["eta_ms"] is not None:
            words.append(f"{progress['eta_ms'] / 1000:.0f} s left")
        if progress["message"]:
            words.append(progress["message"])
        return ", ".join(words)
    if found["result"]:
        return json.dumps(found["result"], ensure_ascii=False)
    return ""


def _named(store: TaskStore, task_id: str) -> Document:
    if len(task_id) >= _ID_LENGTH:
        return store.task(task_id)
    found = [one for one in store.tasks(task_type=None, status=None) if one["id"].startswith(task_id)]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} tasks have an id that begins with {task_id!r}.", field="id")
    if not found:
        raise NotFound(f"There is no task {task_id!r}.")
    return found[0]
