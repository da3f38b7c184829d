"""``svc sync``: how a node sees its cluster; add, remove and join nodes."""

from __future__ import annotations

import sys
import time

import click

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
from svc_sync import operations as op
from svc_sync.models import EnterBody, NewPeer, PeerShown, RejoinBody, SyncStatus

__all__ = ["sync"]

_CLEAR = "\x1b[H\x1b[2J"
_STALE = {
    "removed": "it was removed from the cluster; 'svc sync rejoin' lets it in again",
    "put_back": "its file is an older copy; it joins anew by itself, or by 'svc sync rejoin'",
    "copy": "another database has its identity; 'svc sync rejoin' makes it a node of its own",
}


@click.group(short_help="Shows the cluster; adds, removes and joins nodes.")
def sync() -> None:
    """A cluster: databases on several machines that hold the same files."""


@sync.command()
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option("--interval", default=2.0, show_default=True, type=click.FloatRange(0.2, 3600), help="Seconds.")
@click.option("--count", type=click.IntRange(1), help="With --watch, end after so many.")
@source_options
@json_option
def status(*, watch: bool, interval: float, count: int | None, source: Source, as_json: bool) -> None:
    """Shows the node, its cluster, and how it goes with its peers."""
    shown = 0
    while True:
        found = source.call(op.sync_status)
        if watch and sys.stdout.isatty():
            click.echo(_CLEAR, nl=False)
        if as_json:
            print_json(found)
        else:
            _print_status(found)
        shown += 1
        if not watch or shown == count:
            return
        time.sleep(interval)


def _print_status(found: SyncStatus) -> None:
    copying = ", its first copy is not complete" if found.is_copying else ""
    click.echo(f"node     {found.node_id}{copying}")
    click.echo(f"cluster  {terminal_text(found.cluster_id)}, {len(found.members)} members")
    click.echo(f"head     {found.head}")
    if found.sync_paths is not None:
        click.echo(f"paths    {_words(found.sync_paths)}")
    if found.stale is not None:
        click.echo(f"stale    {_STALE.get(found.stale, terminal_text(found.stale))}")
    if found.registers:
        click.echo(f"waiting  {found.registers} paths that some member may not know yet")
    if found.absent:
        ids = ", ".join(map(str, found.absent))
        click.echo(f"absent   {ids}; 'svc sync remove NODE' ends the wait for one")
    if found.chosen_node is not None and len(found.members) > 1:
        where = "this node" if found.chosen_node == found.node_id else f"node {found.chosen_node}"
        click.echo(f"once     {where} runs schedules of one node")
    _print_peers(found.peers)


@sync.command()
@source_options
@json_option
def peers(*, source: Source, as_json: bool) -> None:
    """Lists the nodes that this one pulls from."""
    found = source.call(op.list_peers)
    if as_json:
        print_json(found)
        return
    _print_peers(found)


@sync.command()
@click.argument("address", metavar="URL")
@click.option("--label", metavar="TEXT", default="", help="What people call the node.")
@click.option(
    "--path", "globs", metavar="GLOB", multiple=True, help="A glob of the paths that the other must take."
)
@source_options
@json_option
def add(*, address: str, label: str, globs: tuple[str, ...], source: Source, as_json: bool) -> None:
    """Lets the node pull from another one of its cluster."""
    made = source.call(op.add_peer, NewPeer(address=address, label=label, sync_paths=list(globs) or None))
    print_result(made, f"added {made.node_id}", as_json=as_json)


@sync.command()
@click.argument("node_id", metavar="NODE")
@source_options
@json_option
def remove(*, node_id: str, source: Source, as_json: bool) -> None:
    """Removes a node from the cluster; to come back it has to join anew."""
    gone = source.call(op.remove_peer, node_id)
    print_result(gone, f"removed {gone.node_id}", as_json=as_json)


@sync.command()
@source_options
@json_option
def trigger(*, source: Source, as_json: bool) -> None:
    """Exchanges with all peers at once, and waits for it."""
    done = source.call(op.trigger_sync)
    if as_json:
        print_json(done)
    else:
        rows = [
            (str(one.node_id), str(one.pulled), str(one.pushed or 0), terminal_text(one.error or ""))
            for one in done.results
        ]
        print_table(rows, ("NODE", "PULLED", "PUSHED", "ERROR"))
    if not all(one.ok for one in done.results):
        raise click.exceptions.Exit(1)


@sync.command()
@click.argument("address", metavar="[URL]", required=False)
@source_options
@json_option
def rejoin(*, address: str | None, source: Source, as_json: bool) -> None:
    """Lets the node join its cluster anew through the member at URL, with all that it has."""
    done = source.call(op.rejoin_cluster, RejoinBody(address=address))
    print_result(done, f"joined anew as {done.node_id}", as_json=as_json)


@sync.command()
@click.argument("address", metavar="URL")
@click.option("--join-token", "key", metavar="KEY", envvar="SVC_JOIN_TOKEN", help="Root key of that member.")
@click.option("--address", "own", metavar="URL", help="Where members reach this node.")
@click.option("--label", metavar="TEXT", help="What people call this node.")
@click.option(
    "--path", "globs", metavar="GLOB", multiple=True, help="Take only paths like this, such as /docs/**."
)
@click.option("--merge", is_flag=True, help="Add what the node holds to what the cluster does.")
@source_options
@json_option
def join(
    *,
    address: str,
    key: str | None,
    own: str | None,
    label: str | None,
    globs: tuple[str, ...],
    merge: bool,
    source: Source,
    as_json: bool,
) -> None:
    """Lets the node join the cluster of the member at URL. Its database is empty, or joins with --merge.

    With --merge its files, snapshots and forks are added to those of the cluster: where both have something
    else, the cluster's stands and the node's is a conflict. Users, keys and settings are the cluster's.

    With --path it takes a part of the files only, and nothing of the users, keys and settings.
    """
    body = EnterBody(
        address=address, token=key, own_address=own, label=label, sync_paths=list(globs) or None, merge=merge
    )
    done = source.call(op.enter_cluster, body)
    text = f"joined {terminal_text(done.cluster_id)} as {done.node_id}; the first copy has begun"
    print_result(done, text, as_json=as_json)


def _words(globs: list[str] | None) -> str:
    return "all" if globs is None else terminal_text(" ".join(globs))


def _print_peers(found: list[PeerShown]) -> None:
    rows = [
        (
            str(one.node_id),
            terminal_text(one.address),
            terminal_text(one.label),
            one.state,
            _words(one.sync_paths),
            "never" if one.last_sync_at is None else time_text(one.last_sync_at),
            f"{one.lag / 1_000:.1f} s",
            "-" if one.clock_offset_ms is None else f"{one.clock_offset_ms:+.0f} ms",
            terminal_text(one.last_error or ""),
        )
        for one in found
    ]
    header = ("NODE", "ADDRESS", "LABEL", "STATE", "PATHS", "LAST SYNC", "LAG", "CLOCK", "ERROR")
    print_table(rows, header)
