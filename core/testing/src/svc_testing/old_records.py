"""Files with file records of older versions, which the program reads and does not write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from svc.database.operations import Put, Unchanged
from svc.hashing import ObjectKind, hash_object
from svc.objects.content import StoredContent
from svc.objects.store import PendingObjects, add_object

if TYPE_CHECKING:
    from svc.database import Database
    from svc.paths import Path

__all__ = ["make_record_old"]


def make_record_old(
    database: Database, *paths: Path, system: bool = False, metadata: dict[str, object] | None = None
) -> None:
    """Gives files of more than one chunk, or of the system tree, records of version 0; one commit.

    ``metadata`` is what the records hold besides; None keeps what they hold.
    """
    tree = database.system() if system else database.at()
    transaction = database.transaction(message="records of version 0")
    for path in paths:
        entry = tree.get(path)
        assert entry is not None, "the file is there"
        assert entry.record is not None, "the file is larger than one chunk"
        record = database.objects.read_record(entry.record)
        kept = record.metadata if metadata is None else metadata
        payload = replace(record, content_hash=None, metadata=kept).encode()
        identity = hash_object(ObjectKind.FILE_RECORD, payload, system)
        pending = PendingObjects()
        add_object(pending, ObjectKind.FILE_RECORD, identity, payload, system=system)
        cut = tuple(zip(record.chunks, record.lengths, strict=True))
        content = StoredContent(entry.size, entry.hash, identity, b"", pending, cut)
        times = entry.created_ms, entry.updated_ms
        transaction._pending.absorb(pending)
        transaction._add(Put(path, content, entry.content_type, *times, Unchanged(entry=entry), system))
    transaction.commit()
