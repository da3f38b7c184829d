"""Where whole copies of damaged objects come from: other files, and what can ask a server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from svc.database.database import Database
from svc.database.packed_commits import commit_identity
from svc.errors import SvcError
from svc.hashing import Hash, ObjectKind, hash_object
from svc.log import FIRST, RECORD_HEADER_SIZE
from svc.log.framing import RecordHeader
from svc.objects.codecs import Codec, compress, decompress
from svc_maintenance.verification.stretches import check_stretch

__all__ = ["FileSource", "RepairSource", "Sources", "StoredForm", "identified"]

_IDENTITIES = tuple(
    (kind, system)
    for kind in (ObjectKind.CHUNK, ObjectKind.NODE, ObjectKind.FILE_RECORD, ObjectKind.COMMIT)
    for system in (False, True)
)


class StoredForm(NamedTuple):
    """An object as a record holds it."""

    kind: ObjectKind
    system: bool
    codec: int
    payload: bytes
    content: bytes


class RepairSource(Protocol):
    """Something that may have whole copies. What it gives is checked by whoever asks."""

    name: str

    def content(self, hash: Hash) -> bytes | None:
        """Returns an object's content, or None; blocks."""
        ...

    def fetch_version(self, root: Hash) -> RepairSource | None:
        """Returns a source of all that a version needs, where that can be had; blocks, perhaps long."""
        ...

    def close(self) -> None:
        """Gives everything back."""
        ...


class FileSource:
    """Another database, an export or a copy of the damaged file; opened for reading, and never changed."""

    def __init__(self, path: str | Path) -> None:
        self.database = Database(path, read_only=True)
        self.name = str(path)
        self._log = self.database.objects.log

    def content(self, hash: Hash) -> bytes | None:
        """Reads the object, if it is there and whole."""
        form = self.stored(hash)
        return None if form is None else form.content

    def stored(self, hash: Hash) -> StoredForm | None:
        """Returns an object as it is stored here; None where it is not, or damaged."""
        place = self.database.objects.index.find(hash)
        if place is None:
            return None
        try:
            record = self._log.read(place.offset, place.stored_length)
            content = decompress(record.codec, record.payload, record.raw_length)
            if hash_object(record.kind, content, record.system) != hash:
                return None
        except (SvcError, KeyError):
            return None
        return StoredForm(record.kind, record.system, record.codec, record.payload, content)

    def packed_commit(self, hash: Hash) -> StoredForm | None:
        """Returns a commit that a pack holds here, by its identity; walks all packs."""
        state = self.database._state
        root = state.head().system_root
        with suppress(SvcError):
            for last in state.packs.ranges(root):
                for payload in state.packs.beside(root, last).values():
                    if commit_identity(payload) == hash:
                        return StoredForm(ObjectKind.COMMIT, True, Codec.RAW, payload, payload)
        return None

    def stretch(self, database_id: bytes, start: int, end: int, following: bytes) -> bytes | None:
        """Returns the bytes between two offsets of a copy of a database, where they are whole records.

        ``following`` is the header of the next record: a copy that went its own way has another one there.
        """
        if self._log.database_id != database_id or end > self._log.storage.size():
            return None
        if self._log.storage.read(end, len(following)) != following:
            return None
        found = check_stretch(self._log.storage.read, start, end, end, database_id)
        return self._log.storage.read(start, end - start) if found.is_whole and found.end == end else None

    def file_header(self, first_record: bytes) -> bytes | None:
        """Returns the header of the file, if its first record is the one whose header is given."""
        mine = self._log.storage.read(FIRST, RECORD_HEADER_SIZE)
        return self._log.storage.header if mine == first_record else None

    def fetch_version(self, root: Hash) -> RepairSource | None:
        """None: all that is here was looked at."""
        return None

    def close(self) -> None:
        """Closes the file."""
        self.database.close()


class Sources:
    """All sources of a repair, asked one after the other."""

    def __init__(self, sources: Sequence[RepairSource]) -> None:
        self._sources = list(sources)
        self._fetched: list[RepairSource] = []

    @property
    def files(self) -> list[FileSource]:
        """Those that are files."""
        return [one for one in self._all() if isinstance(one, FileSource)]

    def find(self, hash: Hash) -> StoredForm | None:
        """Returns an object that some source has whole."""
        for source in self._all():
            if isinstance(source, FileSource):
                form = source.stored(hash)
                if form is not None:
                    return form
                continue
            content = source.content(hash)
            if content is not None:
                kind = identified(hash, content)
                if kind is not None:
                    codec, payload = compress(content)
                    return StoredForm(*kind, int(codec), payload, content)
        return None

    def payload_of(self, header: RecordHeader) -> bytes | None:
        """Returns the very payload that a record held, by its header; None where nobody has it."""
        for source in self._all():
            form = source.stored(header.hash) if isinstance(source, FileSource) else None
            if form is None and header.kind is ObjectKind.COMMIT and isinstance(source, FileSource):
                form = source.packed_commit(header.hash)
            if form is None:
                content = source.content(header.hash)
                if content is None:
                    continue
                forms = [content, compress(content)[1]]
            else:
                forms = [form.payload, form.content, compress(form.content)[1]]
            for payload in forms:
                if len(payload) == header.stored_length and header.accepts(payload):
                    return payload
        return None

    def stretch(self, database_id: bytes, start: int, end: int, following: bytes) -> bytes | None:
        """Returns what a copy of the same database holds between two offsets, if those are whole records."""
        for source in self.files:
            found = source.stretch(database_id, start, end, following)
            if found is not None:
                return found
        return None

    def fetch_version(self, root: Hash) -> bool:
        """Fetches a whole version from the first source that has it; returns whether one did."""
        for source in self._sources:
            fetched = source.fetch_version(root)
            if fetched is not None:
                self._fetched.append(fetched)
                return True
        return False

    def close(self) -> None:
        """Closes what was fetched; the sources that were named are their opener's."""
        for one in self._fetched:
            one.close()
        self._fetched.clear()

    def _all(self) -> list[RepairSource]:
        return [*self._sources, *self._fetched]


def identified(hash: Hash, content: bytes) -> tuple[ObjectKind, bool] | None:
    """Returns the kind of object, and whether it is the system's, of which a content has this identity."""
    for kind, system in _IDENTITIES:
        if hash_object(kind, content, system) == hash:
            return kind, system
    return None
