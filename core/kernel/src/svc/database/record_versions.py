"""File records of older versions: which files have one, and the same record in the new version.

Every version can always be read; nothing has to be rewritten. Rewriting changes only the record: times,
content type, metadata, chunks and the place in the directory stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from svc.database.references import REFERENCES
from svc.database.version import Version
from svc.errors import CorruptRecord
from svc.executor import pause
from svc.hashing import ObjectKind, content_hasher, hash_object
from svc.objects.content import StoredContent
from svc.objects.file_record import PAYLOAD_VERSION
from svc.objects.store import ObjectStore, PendingObjects, add_object
from svc.paths import Path
from svc.tree import Entry, EntryKind

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["FileWithRecord", "files_with_records", "renewed_content"]


class FileWithRecord(NamedTuple):
    """A file of HEAD, or of the system tree, that has a file record.

    ``version`` is the payload version of its record; ``is_current``: records are written in this version.
    """

    path: Path
    entry: Entry
    system: bool
    version: int
    is_current: bool


def files_with_records(
    database: Database, path: Path = (), *, system: bool = False, after: Path | None = None
) -> Iterator[FileWithRecord]:
    """Yields the files that have file records, in path order. Reads each record; gives others their turn.

    Args:
        database: the open database.
        path: only those at and below it.
        system: those of the system tree; what its refs name are versions, which stay as they are.
        after: start behind this path.

    Raises:
        CorruptRecord: a record or a directory is damaged.
    """
    tree = database.system() if system else database.at()
    present = tree.get(path) if path else None
    if present is not None and present.kind is EntryKind.FILE:
        found = iter([(path, present)] if after is None or after < path else [])
    else:
        found = _files(tree, path, system, after)
    for here, entry in found:
        if entry.record is not None:
            version = database.objects.read_record(entry.record).version
            yield FileWithRecord(here, entry, system, version, version == PAYLOAD_VERSION)


def _files(tree: Version, path: Path, system: bool, after: Path | None) -> Iterator[tuple[Path, Entry]]:
    enters = None
    if system:

        def enters(below: Path) -> bool:
            return below[:1] != (REFERENCES,)

    if path and tree.get(path) is None:
        return
    for number, (here, entry) in enumerate(tree.walk_files(path, after=after, enters=enters)):
        if number % 256 == 0:
            pause()
        if entry is not None:
            yield here, entry


def renewed_content(objects: ObjectStore, entry: Entry, *, system: bool) -> StoredContent | None:
    """Returns the content of a file with a record of the present version; None where it has one already.

    A record of version 0 states no content hash: all is read. ``CorruptRecord``: damage, or another content.
    """
    assert entry.record is not None, "the file has a record"
    record = objects.read_record(entry.record)
    if record.version == PAYLOAD_VERSION:
        return None
    hasher = content_hasher()
    for hash, length in zip(record.chunks, record.lengths, strict=True):
        hasher.update(objects.read_chunk(hash, length))
        pause()
    content_hash = hasher.digest()
    if content_hash != entry.hash or record.size != entry.size:
        raise CorruptRecord("The chunks of a file are not the content that its directory states.")
    payload = replace(record, content_hash=content_hash).encode()
    identity = hash_object(ObjectKind.FILE_RECORD, payload, system)
    pending = PendingObjects()
    if not objects.index.contains(identity):
        add_object(pending, ObjectKind.FILE_RECORD, identity, payload, system=system)
    cut = tuple(zip(record.chunks, record.lengths, strict=True))
    return StoredContent(entry.size, content_hash, identity, b"", pending, cut)
