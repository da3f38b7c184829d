"""What is wrong with the place where a database lies, and which plugins those who serve it allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from svc.database.findings import finding_of_lock
from svc.findings import Finding
from svc.log import Writability
from svc_cli.processes.registration import Published

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["allowed_by", "storage_findings"]

_FULL_BYTES = 64 * 1024
_NEARLY_FULL_BYTES = 1 << 30
_NEARLY_FULL_SHARE = 0.05


def allowed_by(lists: Sequence[Published], own: Sequence[str] | None) -> tuple[str, ...] | None:
    """Returns the plugins that a database may use, None for all: what any server allows, else ``own``."""
    if not lists:
        return None if own is None else tuple(own)
    if any(each.allowed is None for each in lists):
        return None
    return tuple(dict.fromkeys(name for each in lists for name in each.allowed or ()))


def storage_findings(database: Database, *, serving: bool = True) -> Iterator[Finding]:
    """Yields what keeps a database from taking writes, apart from what it says itself.

    Where this process is not ``serving`` it, what its user may not do is nothing that is wrong.
    """
    if not serving:
        yield from finding_of_lock(database, look=True)
    log = database.objects.log
    free, total = log.disk_space()
    writability = log.storage.writability()
    if writability is Writability.READ_ONLY or (serving and writability is Writability.FORBIDDEN):
        yield Finding(
            "database.read-only",
            "database",
            "The database file can't be written.",
            "Look at the permissions of the file, and at how its file system is mounted.",
        )
    elif free < _FULL_BYTES:
        yield Finding("database.full", "database", "The disk is full.", "Make room; writes then go on.")
    elif free < min(_NEARLY_FULL_BYTES, total * _NEARLY_FULL_SHARE):
        yield Finding(
            "database.nearly-full",
            "database",
            "The disk is nearly full: writes are refused when it is.",
            "Make room: 'svc gc' says what it could free.",
            detail=f"{free >> 20} MiB of {total >> 20} MiB are free.",
        )
