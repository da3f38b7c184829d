"""``svc events``."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from svc_cli import Source, UserNames, json_option, source_options, terminal_text, time_text
from svc_events.api import Event
from svc_events.following import OF_STREAMS, events_of_file, events_of_server

__all__ = ["events"]

_FROM_THE_BEGINNING = "0"
_SHOWN_PATHS = 5


@click.command(short_help="Shows what happens in the database.")
@click.option("-f", "--follow", is_flag=True, help="Go on, and show what happens from now on.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only events of this type; repeatable.")
@click.option("--path-prefix", "--path", metavar="TEXT", help="Only events with a path that begins so.")
@click.option(
    "--since", metavar="ID", help="Begin behind this event; otherwise at the beginning, with --follow now."
)
@source_options
@json_option
def events(
    *,
    follow: bool,
    types: tuple[str, ...],
    path_prefix: str | None,
    since: str | None,
    source: Source,
    as_json: bool,
) -> None:
    """Shows what happened in the database, the oldest first: its commits, read as events.

    With --json each event is a line.
    """
    if since is None and not follow:
        since = _FROM_THE_BEGINNING
    with source.open_service("events", read_only=True) as service:
        opened: Any = service if source.is_remote else service.database  # type: ignore[attr-defined] # of a file
        read = events_of_server if source.is_remote else events_of_file
        names = UserNames(service)
        for event in read(opened, types, path_prefix=path_prefix, since=since, follow=follow):
            if event.event_type not in OF_STREAMS:
                click.echo(msgspec.json.encode(event) if as_json else _line(event, names))


def _line(event: Event, names: UserNames) -> str:
    when = time_text(event.timestamp)
    said = ((" by ", event.user_id), (" for ", event.recipient_user_id))
    users = "".join(word + names.shown(user_id) for word, user_id in said if user_id is not None)
    return terminal_text(
        f"{event.event_id}  {when}  {event.event_type}  {_about(event, names)} {users}".rstrip()
    )


def _about(event: Event, names: UserNames) -> str:
    """What it is about, in a line: its paths, else what its payload has."""
    payload = event.payload
    entries = payload.get("entries")
    if isinstance(entries, list):
        more = f" and {len(entries) - _SHOWN_PATHS} more" if len(entries) > _SHOWN_PATHS else ""
        shown = [entry.get("path") for entry in entries[:_SHOWN_PATHS] if isinstance(entry, dict)]
        return " ".join(map(str, shown)) + more
    told = payload.get("path")
    if isinstance(told, str):
        return told
    return " ".join(
        f"{name}={names.shown_in(value) if isinstance(value, str) else value}"
        for name, value in payload.items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    )
