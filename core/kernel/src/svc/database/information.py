"""What a database says of itself: the numbers that ``svc info`` prints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from svc.log import CollectableStorage
from svc.objects.key_index import INDEX_LIMIT

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["Space", "information", "space_of"]


_BLOCK = 512
"""Bytes of a unit of ``st_blocks``."""


class Space(msgspec.Struct, frozen=True):
    """What a database takes on its disk, in bytes.

    Attributes:
        log: length of the log.
        log_allocated: what the log takes: less than its length where a collection has given space back.
        state: what the state directory takes, which can be made anew.
        index: of that the key index.
        index_limit: what the key index can take.
        disk: size of the disk of the log.
        disk_free: what is free on it.
    """

    log: int
    log_allocated: int
    state: int
    index: int
    index_limit: int
    disk: int
    disk_free: int


def information(database: Database) -> dict[str, Any]:
    """Returns a description of a database; the cost does not depend on how much it holds.

    Returns:
        ``path``, ``database_id``, ``format`` (``1.0``), ``version`` (HEAD's root hash in hex),
        ``system_version``, ``sequence``, ``committed_at`` (Unix ms or None), ``created_at``,
        ``totals`` (files, directories, symlinks, size, chunks, chunk_bytes), ``file_size`` (bytes of
        the log), ``objects``, ``views`` (name to number of the last applied commit), ``findings`` (what is
        wrong, as ``svc.findings.Finding`` has it).
    """
    head = database.head()
    totals = database.totals()
    log = database.objects.log
    return {
        "path": database.location,
        "database_id": str(UUID(bytes=database.database_id)),
        "format": ".".join(map(str, log.format_version)),
        "version": head.root.hex(),
        "system_version": head.system_root.hex(),
        "sequence": head.sequence,
        "created_at": log.created_ms,
        "committed_at": head.time_ms or None,
        "totals": {
            "files": totals.files,
            "directories": totals.directories,
            "symlinks": totals.symlinks,
            "size": totals.size,
            "chunks": totals.chunks,
            "chunk_bytes": totals.chunk_bytes,
        },
        "file_size": log.tail,
        "objects": database.objects.index.object_count(),
        "views": {name: reader.applied for name, reader in database.views().items()},
        "findings": [msgspec.structs.asdict(finding) for finding in database.findings()],
    }


def space_of(database: Database) -> Space:
    """Returns what a database takes on its disk; looks at each file of the state directory, which are few."""
    log = database.objects.log
    length, allocated = log.tail, log.tail
    if isinstance(log.storage, CollectableStorage):
        allocated = log.storage.allocated()
    free, total = log.disk_space()
    state = database.state_directory
    return Space(
        log=length,
        log_allocated=allocated,
        state=sum(_allocated_below(state)),
        index=sum(_allocated_below(state / "index")),
        index_limit=INDEX_LIMIT,
        disk=total,
        disk_free=free,
    )


def _allocated_below(directory: Path) -> Iterator[int]:
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                yield os.lstat(os.path.join(parent, name)).st_blocks * _BLOCK
            except OSError:
                continue
