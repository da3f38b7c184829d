"""Where each destination stands: records of the system tree at ``events/sinks/<sink>/<destination>``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from svc.plugin import Path, attempt, read_record, same_content
from svc_events.places import Place, parse_place

if TYPE_CHECKING:
    from svc.plugin import Database, Entry, Transaction, Version

__all__ = [
    "SINKS",
    "SinkRecord",
    "ask_again",
    "begin",
    "forget",
    "read_sink_record",
    "sink_file",
    "sink_records",
    "write_sink_record",
]

SINKS: Path = ("events", "sinks")


class SinkRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a destination is.

    Attributes:
        place: the id of the event behind which it stands.
        asked: greater each time that somebody asks to go on at once, or elsewhere, or begins anew; with a
            number that the courier does not know, ``place`` is where it goes on.
    """

    place: str
    asked: int = 0

    @property
    def parsed(self) -> Place:
        """The place."""
        return parse_place(self.place)


def sink_file(sink: str, destination_id: str) -> Path:
    """The record of a destination."""
    return (*SINKS, sink, destination_id)


def read_sink_record(
    system: Version, sink: str, destination_id: str
) -> tuple[Entry | None, SinkRecord | None]:
    """Returns the record of a destination, and its entry."""
    entry = system.get(sink_file(sink, destination_id))
    return entry, read_record(system, entry, SinkRecord, keep=False)


def sink_records(system: Version, sink: str) -> dict[str, SinkRecord]:
    """Returns the records of a sink, by the ids of the destinations."""
    directory = (*SINKS, sink)
    if system.get(directory) is None:
        return {}
    found = {name: read_sink_record(system, sink, name)[1] for name, _ in system.entries(directory)}
    return {name: record for name, record in found.items() if record is not None}


def write_sink_record(
    changes: Transaction, sink: str, destination_id: str, record: SinkRecord, entry: Entry | None
) -> None:
    """Stores a record, if ``entry`` is still what stands there."""
    content = msgspec.json.encode(record)
    changes.put_system(sink_file(sink, destination_id), content, condition=same_content(entry))


def begin(changes: Transaction, sink: str, destination_id: str, place: Place) -> None:
    """See ``svc_events.api.begin_destination``."""
    record = SinkRecord(str(place), time.time_ns())
    changes.put_system(sink_file(sink, destination_id), msgspec.json.encode(record))


def forget(changes: Transaction, sink: str, destination_id: str, known: SinkRecord, system: Version) -> None:
    """Removes the record of a destination, if it still is what is known of it."""
    entry, present = read_sink_record(system, sink, destination_id)
    if entry is not None and present == known:
        # A removal has no condition, what stands before it in the transaction has.
        write_sink_record(changes, sink, destination_id, known, entry)
        changes.delete_system(sink_file(sink, destination_id))


def ask_again(
    database: Database, sink: str, destination_id: str, since: Place | None, actor: str | None
) -> None:
    """See ``svc_events.api.deliver_again``."""

    def work() -> None:
        entry, record = read_sink_record(database.system(), sink, destination_id)
        record = record or SinkRecord(str(Place(database.head().sequence)))
        place = record.place if since is None else str(since)
        with database.transaction(actor=actor, message=f"deliver again to {destination_id}") as changes:
            write_sink_record(changes, sink, destination_id, SinkRecord(place, record.asked + 1), entry)

    attempt(work, "The place of the destination")
