"""What the routes read from a request in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import falcon

from svc.errors import InvalidInput, NotFound
from svc.plugin import Database, Hash, encode_json, parse_time, send_stream
from svc_backup.configuration import BackupConfiguration
from svc_backup.format import Outgoing

__all__ = [
    "chosen_version",
    "named_version",
    "send_file",
    "settings_of",
]


def settings_of(req: falcon.Request) -> BackupConfiguration:
    """Returns the plugin's settings in the database that is served."""
    configuration = req.context.configuration
    return configuration if isinstance(configuration, BackupConfiguration) else BackupConfiguration()


def chosen_version(
    database: Database, snapshot: str | None, version: str | None, at: str | int | None
) -> Hash:
    """Returns the version that a request names: a snapshot, a hash, a time, in this order; else HEAD."""
    if snapshot is not None and not snapshot:
        raise NotFound("There is no snapshot of this name.", name=snapshot)
    time_ms = parse_time(at) if isinstance(at, str) else at
    return database.resolve_version(snapshot=snapshot, version=version, at=time_ms)


def named_version(database: Database, name: str, field: str) -> Hash:
    """Returns the version that a text names (see ``Database.named_version``)."""
    if not name:
        raise InvalidInput(f"The member {field} names a version.", field=field)
    return database.named_version(name)


def send_file(resp: falcon.Response, outgoing: Outgoing, name: str, report: dict[str, Any]) -> None:
    """Answers with a planned file as a stream of known length, and its report; closes it at the end."""
    resp.set_header("Content-Disposition", f'attachment; filename="{name}"')
    resp.set_header("X-Svc-Version", outgoing.root.hex())
    resp.set_header("X-Svc-Report", encode_json(report).decode())
    resp.set_header("Cache-Control", "no-store")
    send_stream(resp, _Closing(outgoing), outgoing.size, content_type="application/octet-stream")


class _Closing(Iterator[bytes]):
    """The pieces of a file, which is closed with them, also when they were never asked for."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._pieces = outgoing.pieces()

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        self._outgoing.close()
