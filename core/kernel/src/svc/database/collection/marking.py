"""Marking: which records of the log are needed, as a bitmap.

A bit stands for the offset of a record divided by eight, since records begin at multiples of eight. A
compressed bitmap of ten million takes some ten megabytes, a set of hashes would take a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyroaring import BitMap64

from svc.errors import CorruptRecord, SvcError
from svc.hashing import Hash, ObjectKind
from svc.objects.file_record import FileRecord
from svc.objects.key_index import Place
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT, ObjectStore
from svc.tree import Inner, decode_node

__all__ = ["Marker"]

_BATCH = 128
_CONTENTS = 4096
_EMPTY = (EMPTY_ROOT, EMPTY_SYSTEM_ROOT)
_CHUNK, _RECORD, _NODE = ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE


class Marker:
    """What is needed so far. Each node and each file record is read once, and no cache is filled with it.

    Attributes:
        dead: places found dead; one that is marked later is needed after all, and comes to life again.
        revived: hash and place of each that came to life again since this was last emptied.
        missing: chunks that are needed and that the key index does not know.
    """

    def __init__(self, objects: ObjectStore, progress: Callable[[int], None] = lambda marked: None) -> None:
        self.live = BitMap64()
        self.dead = BitMap64()
        self.revived: list[tuple[Hash, Place]] = []
        self.missing: set[Hash] = set()
        self._objects = objects
        self._progress = progress
        self._contents: list[tuple[Hash, bool]] = []

    def mark_root(self, root: Hash) -> bool:
        """Marks a tree with everything that it needs; returns whether its root was new.

        ``CorruptRecord``: a node or a file record is damaged or missing, and nobody can say what it needs.
        """
        if root in _EMPTY:
            return False
        before = len(self.live)
        pending = [root]
        is_new: bool | None = None
        while pending:
            batch = pending[-_BATCH:]
            del pending[-_BATCH:]
            for hash, place in self._new_of(batch, _NODE):
                self._open_node(hash, place, pending)
            if is_new is None:
                is_new = len(self.live) > before
            if len(self._contents) >= _CONTENTS:
                self._mark_contents()
        self._mark_contents()
        return bool(is_new)

    def needs(self, hash: Hash, offset: int) -> bool:
        """Whether an object is needed that stands at an offset where the key index does not look for it."""
        if hash in self.missing:
            return True
        place = self._objects.index.find(hash)
        return place is not None and place.offset != offset and not self._objects.stands_at(hash, place)

    def mark_chunks(self, hashes: Iterable[Hash]) -> None:
        """Marks chunks of the user tree; hashes that are none are passed over."""
        found = self._objects.index.locate(hashes)
        self._add([(hash, place) for hash, place in found if place.kind == _CHUNK and not place.system])

    def _open_node(self, hash: Hash, place: Place, pending: list[Hash]) -> None:
        node = decode_node(self._read(hash, place))
        if isinstance(node, Inner):
            pending += node.children()
            return
        pending += [below for _, below in node.directories() if below not in _EMPTY]
        self._contents += node.contents()

    def _mark_contents(self) -> None:
        contents, self._contents = self._contents, []
        chunks = [hash for hash, is_record in contents if not is_record]
        records = [hash for hash, is_record in contents if is_record]
        for hash, place in self._new_of(records, _RECORD):
            chunks += FileRecord.decode(self._read(hash, place)).chunks
            if len(chunks) >= _CONTENTS:
                self._mark_needed(chunks)
                chunks.clear()
        self._mark_needed(chunks)
        self._progress(len(self.live))

    def _mark_needed(self, chunks: list[Hash]) -> None:
        found = self._objects.index.locate(chunks)
        if len(found) < len(chunks):
            # That is damage, and no reason to keep less, unless it turns out to be in the log.
            there = {hash for hash, _ in found}
            self.missing.update(
                hash for hash in chunks if hash not in there and self._objects.explain_missing(hash) is None
            )
        self._add(found)

    def _new_of(self, hashes: list[Hash], kind: ObjectKind) -> list[tuple[Hash, Place]]:
        found = self._objects.index.locate(hashes)
        if len(found) < len(hashes):
            there = {hash for hash, _ in found}
            for missing in (hash for hash in hashes if hash not in there):
                # What a repair has given up names nothing any more that anybody could come to.
                if self._objects.explain_missing(missing) is None:
                    raise _damage("is missing", kind, missing)
        new: list[tuple[Hash, Place]] = []
        live = self.live
        for hash, place in found:
            position = place.offset >> 3
            if position not in live:
                if place.kind != kind:
                    raise _damage("is another object", kind, hash)
                live.add(position)
                new.append((hash, place))
                if position in self.dead:
                    self._revive(hash, place)
        return new

    def _add(self, found: list[tuple[Hash, Place]]) -> None:
        positions = [place.offset >> 3 for _, place in found]
        if self.dead:
            dead, live = self.dead, self.live
            for (hash, place), position in zip(found, positions, strict=True):
                if position in dead and position not in live:
                    live.add(position)
                    self._revive(hash, place)
        self.live.update(positions)

    def _revive(self, hash: Hash, place: Place) -> None:
        self.dead.discard(place.offset >> 3)
        self.revived.append((hash, place))

    def _read(self, hash: Hash, place: Place) -> bytes:
        try:
            return self._objects.read_at(hash, place)
        except SvcError as error:
            raise _damage("is damaged", ObjectKind(place.kind), hash, place.offset) from error


def _damage(what: str, kind: ObjectKind, hash: Hash, offset: int | None = None) -> CorruptRecord:
    name = "directory node" if kind is _NODE else "file record"
    details = {} if offset is None else {"offset": offset}
    return CorruptRecord(
        f"A {name} {what} that a version needs: nobody can say what else is needed, so nothing is collected. "
        "See 'svc verify', and repair the database first.",
        hash=hash.hex(),
        **details,
    )
