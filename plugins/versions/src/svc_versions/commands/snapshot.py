"""``svc snapshot``: make, list, rename, restore and delete snapshots."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from svc.cli import database_option, json_option, print_json, time_text
from svc.errors import UsageError
from svc_versions.commands.output import opened, print_table, short_hash
from svc_versions.forks import find_fork
from svc_versions.restoring import restore_snapshot
from svc_versions.snapshots import create_snapshot, delete_snapshot, list_snapshots, rename_snapshot

__all__ = ["snapshot"]


@click.group(short_help="Makes, lists and restores snapshots.")
def snapshot() -> None:
    """Snapshots: names for versions that shall stay."""


@snapshot.command("create", short_help="Makes a snapshot of HEAD.")
@click.argument("name")
@click.option("--metadata", metavar="JSON", help="A JSON object to keep with it.")
@click.option("--fork", metavar="NAME", help="Of this fork's state instead of HEAD.")
@click.option("--from", "version", metavar="VERSION", help="Of this version instead of HEAD.")
@database_option
@json_option
def create(
    *, name: str, metadata: str | None, fork: str | None, version: str | None, database: str, as_json: bool
) -> None:
    """Makes a snapshot of HEAD; one of the same version that exists is returned instead."""
    if fork is not None and version is not None:
        raise UsageError("--fork and --from exclude each other.")
    kept = _metadata(metadata)
    with opened(database) as store:
        root, base_sequence = None, None
        if fork is not None:
            source = find_fork(store, fork)
            root, base_sequence = source.root, source.base_sequence
        elif version is not None:
            root = store.named_version(version)
        made, is_new = create_snapshot(store, name, kept, root=root, base_sequence=base_sequence)
    if as_json:
        print_json({**made.as_json(), "created": is_new})
    elif is_new:
        click.echo(f"created snapshot {made.name} of {made.root.hex()}")
    else:
        click.echo(f"snapshot {made.name} is of the same version {made.root.hex()}")


@snapshot.command("list")
@database_option
@json_option
def list_(*, database: str, as_json: bool) -> None:
    """Lists snapshots, newest first."""
    with opened(database, read_only=True) as store:
        found = list_snapshots(store)
    if as_json:
        print_json([one.as_json() for one in found])
        return
    print_table([(one.name, time_text(one.created_ms), short_hash(one.root), one.kind) for one in found])


@snapshot.command("delete")
@click.argument("name")
@database_option
@json_option
def delete(*, name: str, database: str, as_json: bool) -> None:
    """Deletes a snapshot."""
    with opened(database) as store:
        gone = delete_snapshot(store, name)
    if as_json:
        print_json({"deleted": True, "name": gone.name, "root_hash": gone.root.hex()})
    else:
        click.echo(f"deleted snapshot {gone.name} of {gone.root.hex()}")


@snapshot.command("rename")
@click.argument("name")
@click.argument("new_name")
@database_option
@json_option
def rename(*, name: str, new_name: str, database: str, as_json: bool) -> None:
    """Gives a snapshot another name."""
    with opened(database) as store:
        renamed = rename_snapshot(store, name, new_name)
    if as_json:
        print_json(renamed.as_json())
    else:
        click.echo(f"renamed snapshot {name} to {renamed.name}")


@snapshot.command("restore", short_help="Makes a snapshot HEAD again.")
@click.argument("name")
@database_option
@json_option
def restore(*, name: str, database: str, as_json: bool) -> None:
    """Makes a snapshot HEAD again; what HEAD is now stays in a snapshot of its own."""
    with opened(database) as store:
        restored = restore_snapshot(store, name)
    if as_json:
        print_json(
            {
                "restored": True,
                "name": restored.name,
                "auto_snapshot": restored.auto_snapshot,
                "version": restored.version.hex(),
            }
        )
    elif restored.auto_snapshot is None:
        click.echo(f"HEAD is the version of snapshot {restored.name} already")
    else:
        click.echo(f"restored snapshot {restored.name}; HEAD before it is snapshot {restored.auto_snapshot}")


def _metadata(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise UsageError("--metadata takes a JSON object.", field="metadata") from None
