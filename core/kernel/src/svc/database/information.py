"""What a database says of itself: the numbers that ``svc info`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["information"]


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
