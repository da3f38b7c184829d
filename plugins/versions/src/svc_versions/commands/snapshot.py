"""``svc snapshot``: make, list, rename, restore and delete snapshots."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from svc.errors import UsageError
from svc_cli import (
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    time_text,
)
from svc_versions.commands.output import short_hash
from svc_versions.models import LifecycleChange, NewSnapshot, ResolveQuery, ScheduleChange, SnapshotName
from svc_versions.operations import (
    change_lifecycle,
    create_snapshot,
    delete_snapshot,
    list_snapshots,
    rename_snapshot,
    resolve_version,
    restore_snapshot,
    show_lifecycle,
    show_snapshot,
)

__all__ = ["snapshot"]

_STATES = click.IntRange(0, 1_000)


@click.group(short_help="Makes, lists and restores snapshots.")
def snapshot() -> None:
    """Snapshots: names for versions that shall stay."""


@snapshot.command("create", short_help="Makes a snapshot of HEAD.")
@click.argument("name")
@click.option("--metadata", metavar="JSON", help="A JSON object to keep with it.")
@click.option("--fork", metavar="NAME", help="Of this fork's state instead of HEAD.")
@click.option("--at", "--from", "version", metavar="VERSION", help="Of this version instead of HEAD.")
@source_options
@json_option
def create(
    *, name: str, metadata: str | None, fork: str | None, version: str | None, source: Source, as_json: bool
) -> None:
    """Makes a snapshot of HEAD; one of the same version that exists is returned instead."""
    if fork is not None and version is not None:
        raise UsageError("--fork and --at exclude each other.")
    kept = _metadata(metadata)
    with source.open_service("versions") as service:
        root = None if version is None else service.call(resolve_version, ResolveQuery(version)).version
        answer = service.call(create_snapshot, NewSnapshot(name, kept, fork, root))
    made = answer.value
    what = (
        f"created snapshot {made.name} of"
        if answer.created
        else f"snapshot {made.name} is of the same version"
    )
    print_result(
        {**msgspec.to_builtins(made), "created": answer.created},
        f"{what} {made.root_hash}",
        as_json=as_json,
    )


@snapshot.command("list")
@source_options
@json_option
def list_(*, source: Source, as_json: bool) -> None:
    """Lists snapshots, newest first."""
    found = source.call(list_snapshots).snapshots
    if as_json:
        print_json(found)
        return
    print_table(
        [(one.name, time_text(one.created_at), short_hash(one.root_hash), one.kind) for one in found],
        ("SNAPSHOT", "MADE", "VERSION", "KIND"),
    )


@snapshot.command("delete")
@click.argument("name")
@source_options
@json_option
def delete(*, name: str, source: Source, as_json: bool) -> None:
    """Deletes a snapshot."""
    with source.open_service("versions") as service:
        root = service.call(show_snapshot, name).root_hash
        gone = service.call(delete_snapshot, name)
    print_result(
        {**msgspec.to_builtins(gone), "root_hash": root},
        f"deleted snapshot {gone.name} of {root}",
        as_json=as_json,
    )


@snapshot.command("rename")
@click.argument("name")
@click.argument("new_name")
@source_options
@json_option
def rename(*, name: str, new_name: str, source: Source, as_json: bool) -> None:
    """Gives a snapshot another name."""
    renamed = source.call(rename_snapshot, name, SnapshotName(new_name))
    print_result(renamed, f"renamed snapshot {name} to {renamed.name}", as_json=as_json)


@snapshot.command("restore", short_help="Makes a snapshot HEAD again.")
@click.argument("name")
@source_options
@json_option
def restore(*, name: str, source: Source, as_json: bool) -> None:
    """Makes a snapshot HEAD again; what HEAD is now stays in a snapshot of its own."""
    done = source.call(restore_snapshot, SnapshotName(name))
    if done.auto_snapshot is None:
        text = f"HEAD is the version of snapshot {done.name} already"
    else:
        text = f"restored snapshot {done.name}; HEAD before it is snapshot {done.auto_snapshot}"
    print_result(done, text, as_json=as_json)


@snapshot.command("auto", short_help="Makes snapshots by a schedule.")
@click.option("--hourly", type=_STATES, metavar="N", help="Keep N states, each of another hour.")
@click.option("--daily", type=_STATES, metavar="N", help="Keep N states, each of another day.")
@click.option("--weekly", type=_STATES, metavar="N", help="Keep N states, each of another week.")
@click.option("--off", is_flag=True, help="Make none; those that are there stay.")
@source_options
@json_option
def auto(
    *, hourly: int | None, daily: int | None, weekly: int | None, off: bool, source: Source, as_json: bool
) -> None:
    """Names HEAD once an hour, a day or a week, while a server runs, and deletes what is too old.

    Without options it shows the schedule. 'svc gc' keeps what has a name.
    """
    change = ScheduleChange(hourly=hourly, daily=daily, weekly=weekly)
    if off:
        if change != ScheduleChange():
            raise UsageError("--off goes with no number.")
        change = ScheduleChange(hourly=0, daily=0, weekly=0)
    with source.open_service("versions") as service:
        if change != ScheduleChange():
            service.call(change_lifecycle, LifecycleChange(snapshot_schedule=change))
        settings = service.call(show_lifecycle)
    schedule = settings.snapshot_schedule
    counts = [f"{count} {period}" for period, count in msgspec.structs.asdict(schedule).items() if count]
    text = f"kept by the schedule: {', '.join(counts)}" if counts else "no snapshots are made by a schedule"
    if counts and not settings.snapshot_writes_enabled:
        text += "; but the lifecycle settings forbid snapshots"
    print_result(schedule, text, as_json=as_json)


def _metadata(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise UsageError("--metadata takes a JSON object.", field="metadata") from None
