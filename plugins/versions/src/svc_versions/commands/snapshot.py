"""``svc snapshot``: make, list, rename, restore and delete snapshots."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from svc.errors import UsageError
from svc.plugin import (
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_versions.commands.output import short_hash
from svc_versions.commands.store import open_versions

__all__ = ["snapshot"]


@click.group(short_help="Makes, lists and restores snapshots.")
def snapshot() -> None:
    """Snapshots: names for versions that shall stay."""


@snapshot.command("create", short_help="Makes a snapshot of HEAD.")
@click.argument("name")
@click.option("--metadata", metavar="JSON", help="A JSON object to keep with it.")
@click.option("--fork", metavar="NAME", help="Of this fork's state instead of HEAD.")
@click.option("--from", "version", metavar="VERSION", help="Of this version instead of HEAD.")
@source_options
@json_option
def create(
    *, name: str, metadata: str | None, fork: str | None, version: str | None, source: Source, as_json: bool
) -> None:
    """Makes a snapshot of HEAD; one of the same version that exists is returned instead."""
    if fork is not None and version is not None:
        raise UsageError("--fork and --from exclude each other.")
    kept = _metadata(metadata)
    with open_versions(source) as store:
        made, is_new = store.create_snapshot(name, kept, fork, version)
    if as_json:
        print_json({**made, "created": is_new})
    elif is_new:
        click.echo(terminal_text(f"created snapshot {made['name']} of {made['root_hash']}"))
    else:
        text = f"snapshot {made['name']} is of the same version {made['root_hash']}"
        click.echo(terminal_text(text))


@snapshot.command("list")
@source_options
@json_option
def list_(*, source: Source, as_json: bool) -> None:
    """Lists snapshots, newest first."""
    with open_versions(source, read_only=True) as store:
        found = store.snapshots()
    if as_json:
        print_json(found)
        return
    print_table(
        [
            (one["name"], time_text(one["created_at"]), short_hash(one["root_hash"]), one["kind"])
            for one in found
        ]
    )


@snapshot.command("delete")
@click.argument("name")
@source_options
@json_option
def delete(*, name: str, source: Source, as_json: bool) -> None:
    """Deletes a snapshot."""
    with open_versions(source) as store:
        gone = store.delete_snapshot(name)
    print_result(gone, f"deleted snapshot {gone['name']} of {gone['root_hash']}", as_json=as_json)


@snapshot.command("rename")
@click.argument("name")
@click.argument("new_name")
@source_options
@json_option
def rename(*, name: str, new_name: str, source: Source, as_json: bool) -> None:
    """Gives a snapshot another name."""
    with open_versions(source) as store:
        renamed = store.rename_snapshot(name, new_name)
    print_result(renamed, f"renamed snapshot {name} to {renamed['name']}", as_json=as_json)


@snapshot.command("restore", short_help="Makes a snapshot HEAD again.")
@click.argument("name")
@source_options
@json_option
def restore(*, name: str, source: Source, as_json: bool) -> None:
    """Makes a snapshot HEAD again; what HEAD is now stays in a snapshot of its own."""
    with open_versions(source) as store:
        restored = store.restore_snapshot(name)
    if as_json:
        print_json(restored)
    elif restored["auto_snapshot"] is None:
        click.echo(terminal_text(f"HEAD is the version of snapshot {restored['name']} already"))
    else:
        before = restored["auto_snapshot"]
        text = f"restored snapshot {restored['name']}; HEAD before it is snapshot {before}"
        click.echo(terminal_text(text))


def _metadata(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise UsageError("--metadata takes a JSON object.", field="metadata") from None
