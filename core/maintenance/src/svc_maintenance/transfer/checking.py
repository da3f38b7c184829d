"""Verifies objects that come in, wholly, before any of them is taken: nothing in them is believed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from svc.database.operations import check_link_target
from svc.database.references import is_reference
from svc.errors import CorruptRecord, InvalidInput, InvalidPath, RefusedFile
from svc.hashing import Hash, ObjectKind, content_hasher, hash_object
from svc.objects.file_record import FileRecord
from svc.objects.store import EMPTY_SYSTEM_ROOT, ObjectStore
from svc.paths import MAXIMUM_PATH_BYTES, SYSTEM_NAMES, Path, parse_path
from svc.tree import Entry, EntryKind, Inner, Leaf, NodeReader, check_directory, lookup
from svc.tree.codec import MAXIMUM_CONTENT_TYPE
from svc_maintenance.transfer.joined import JoinedObjects
from svc_maintenance.transfer.records import FilePlace, ObjectSource, decoded

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["OF_SYSTEM", "OF_USER", "CheckedObjects", "check_objects"]

OF_USER = 1
"""Mark of an object that the version needs."""

OF_SYSTEM = 2
"""Mark of an object that only the system tree needs, or the versions that its refs name."""

_PAUSE_EVERY = 8
_KNOWN_RECORDS = 1 << 16
_PAUSE_BYTES = 1 << 20
_EMPTY_CONTENT = hash_object(ObjectKind.CHUNK, b"")

CheckProgress = Callable[[int, int], None]
"""Called with (bytes verified, bytes in all)."""


class CheckedObjects(Struct, frozen=True):
    """Objects that were verified, and may be taken.

    ``marks`` has for each, by ordinal, ``OF_USER`` or ``OF_SYSTEM``, or both. ``directories`` counts those
    whose index is among them, the root included. ``nodes`` reads the version's nodes, also from the database.
    """

    source: ObjectSource
    marks: bytearray
    directories: int
    nodes: NodeReader


def check_objects(
    source: ObjectSource,
    database: Database | None,
    root: Hash,
    system_root: Hash = EMPTY_SYSTEM_ROOT,
    *,
    most_content: int,
    pause: Callable[[], None] = lambda: None,
    progress: CheckProgress | None = None,
) -> CheckedObjects:
    """Verifies objects wholly: each is reached from a version, hashed, and compared with what names it.

    They may name objects of the ``database`` that they come into; if it is None, they must need no other. The
    file records may state ``most_content`` bytes of content, since a content may name one chunk a million
    times. ``pause`` is called after every megabyte or so, to let others run.

    Raises:
        CorruptRecord: something is damaged, forged, missing, or belongs to no version.
        RefusedFile: it states more content than is allowed.
        UnsupportedFormat: a newer program made it.
    """
    target = None if database is None else database.objects
    return _Check(source, target, most_content, pause, progress).run(root, system_root)


class _Check:
    def __init__(
        self,
        source: ObjectSource,
        target: ObjectStore | None,
        most_content: int,
        pause: Callable[[], None],
        progress: CheckProgress | None,
    ) -> None:
        self._source = source
        self._objects = JoinedObjects(source, target, pause)
        self._pause = pause
        self._progress = progress
        self._verified = 0
        self._unpaused = 0
        self._marks = bytearray(source.objects)
        self._mark = OF_USER
        self._longest: dict[Hash, int] = {}
        self._directories = 0
        self._steps = 0
        self._content_left = most_content
        self._records: OrderedDict[Hash, tuple[int, Hash]] = OrderedDict()

    def run(self, root: Hash, system_root: Hash) -> CheckedObjects:
        self._check_tree(root, False)
        directories = self._directories
        self._mark = OF_SYSTEM
        if system_root != EMPTY_SYSTEM_ROOT:
            self._check_tree(system_root, True)
        unnamed = self._marks.count(0)
        if unnamed:
            raise CorruptRecord(f"{unnamed} of its objects belong to no version.")
        return CheckedObjects(self._source, self._marks, directories, self._objects)

    def _check_tree(self, root: Hash, system: bool) -> None:
        if not system:
            self._check_top(root)
        stack = [_Frame(root, system, self._directory(root, system, (), None))]
        while stack:
            frame = stack[-1]
            step = next(frame.below, None)
            if step is None:
                stack.pop()
                self._longest[frame.root] = frame.longest
                if stack:
                    stack[-1].take(frame.longest)
                continue
            name, below, is_system, path, ordinal = step
            frame.name_bytes = name
            if is_system != frame.system:
                self._objects.require(below, ObjectKind.NODE, is_system, before=ordinal)
                self._check_top(below)
            if below in self._longest or self._objects.is_known(below):
                self._objects.require(below, ObjectKind.NODE, is_system, before=ordinal)
                frame.take(self._longest.get(below, 0))
                continue
            children = self._directory(below, is_system, path, ordinal)
            stack.append(_Frame(below, is_system, children))

    def _directory(
        self, root: Hash, system: bool, path: Path, named_by: int | None
    ) -> Iterator[tuple[int, Hash, bool, Path, int]]:
        """Checks one directory itself.

        Yields for each subdirectory: bytes of its name, root, whether it is the system's, its path in the
        system tree, ordinal of the node that names it.
        """
        self._objects.require(root, ObjectKind.NODE, system, before=named_by)
        if self._objects.is_known(root):
            return
        self._directories += 1
        check_directory(self._objects, root, self._objects.is_known)
        stack = [root]
        while stack:
            hash = stack.pop()
            place = self._objects.in_file(hash)
            if place is None:
                continue
            self._take(place)
            node = self._objects.read_node(hash)
            self._rest()
            if isinstance(node, Inner):
                for child in reversed(node.children()):
                    self._objects.require(child, ObjectKind.NODE, system, before=place.ordinal)
                    stack.append(child)
                continue
            yield from self._leaf(node, place.ordinal, system, path)

    def _leaf(
        self, leaf: Leaf, ordinal: int, system: bool, path: Path
    ) -> Iterator[tuple[int, Hash, bool, Path, int]]:
        for name, entry in leaf.items():
            if not system:
                _check_name(name)
            if entry.kind is EntryKind.DIRECTORY:
                here = (*path, name) if system else ()
                # A version that a ref names is a user tree, with a root of its own.
                yield len(name.encode()), entry.hash, system and not is_reference(here), here, ordinal
            elif entry.kind is EntryKind.SYMLINK:
                _check_link(entry)
            else:
                self._check_file(entry, ordinal, system)

    def _check_top(self, root: Hash) -> None:
        self._objects.require(root, ObjectKind.NODE, False)
        if any(lookup(self._objects, root, name) is not None for name in SYSTEM_NAMES):
            raise CorruptRecord("it holds a path of the system namespace.")

    def _check_file(self, entry: Entry, ordinal: int, system: bool) -> None:
        if entry.content_type is not None and len(entry.content_type) > MAXIMUM_CONTENT_TYPE:
            raise CorruptRecord("a content type is too long.")
        if entry.size == 0 and entry.record is None:
            if entry.hash != _EMPTY_CONTENT:
                raise CorruptRecord("an empty file has the hash of another content.")
            return
        if entry.record is None:
            if system:
                raise CorruptRecord("a file of the system has no record.")
            place, size = self._objects.require(entry.hash, ObjectKind.CHUNK, False, before=ordinal)
            if size != entry.size:
                raise CorruptRecord("a file states another size than its content has.")
            if place is not None and not self._marks[place.ordinal]:
                self._content(entry.hash, place)
            self._take(place)
            return
        place, _ = self._objects.require(entry.record, ObjectKind.FILE_RECORD, system, before=ordinal)
        if self._record(entry.record, place, system) != (entry.size, entry.hash):
            raise CorruptRecord("a file states another size or hash than its record.")

    def _record(self, hash: Hash, place: FilePlace | None, system: bool) -> tuple[int, Hash]:
        """Returns the size and the content hash that a file record states, once they are known to be true."""
        is_marked = place is None or bool(self._marks[place.ordinal] & self._mark)
        known = self._records.get(hash)
        if known is not None and is_marked:
            return known
        payload = self._objects.content(hash, ObjectKind.FILE_RECORD)
        record = decoded(FileRecord.decode, payload, "a file record")
        content_hash = record.content_hash
        # A record of version 0 does not state the hash: it is computed, also where the chunks are known.
        if content_hash is None or (place is not None and not self._marks[place.ordinal]):
            content_hash = self._check_record(record, payload, place, system)
        if place is not None and not is_marked:
            for chunk in record.chunks:
                self._take(self._objects.in_file(chunk))
            self._take(place)
        self._records[hash] = record.size, content_hash
        if len(self._records) > _KNOWN_RECORDS:
            self._records.popitem(last=False)
        return record.size, content_hash

    def _check_record(
        self, record: FileRecord, payload: bytes, place: FilePlace | None, system: bool
    ) -> Hash:
        """Reads all that a record names: it must be there and make its content, whose hash is returned."""
        offset = None if place is None else place.offset
        encoded = decoded(lambda _: record.encode(), payload, "a file record")
        if encoded != payload or not record.chunks or 0 in record.lengths:
            raise CorruptRecord("a file record is not as it must be.", offset=offset)
        self._content_left -= record.size
        if self._content_left < 0:
            raise RefusedFile("The file states more content than the limit on its expansion allows.")
        hasher = content_hasher()
        for hash, length in zip(record.chunks, record.lengths, strict=True):
            before = None if place is None else place.ordinal
            chunk, size = self._objects.require(hash, ObjectKind.CHUNK, system, before=before)
            if size != length:
                raise CorruptRecord("a file record states another length than a chunk has.")
            hasher.update(self._content(hash, chunk))
        content_hash = hasher.digest()
        if record.content_hash not in (None, content_hash):
            raise CorruptRecord("a file does not have the content hash that it states.", offset=offset)
        return content_hash

    def _content(self, hash: Hash, place: FilePlace | None) -> bytes:
        content = (
            self._objects.content(hash, ObjectKind.CHUNK)
            if place is None
            else self._source.content(hash, place)
        )
        self._unpaused += len(content)
        if self._unpaused >= _PAUSE_BYTES:
            self._unpaused = 0
            self._pause()
        return content

    def _take(self, place: FilePlace | None) -> None:
        if place is None:
            return
        if not self._marks[place.ordinal]:
            self._verified += place.stored_length
        self._marks[place.ordinal] |= self._mark

    def _rest(self) -> None:
        self._steps += 1
        if self._steps % _PAUSE_EVERY == 0:
            self._pause()
            if self._progress is not None:
                self._progress(self._verified, self._source.size)


class _Frame:
    """A directory whose subdirectories are being checked."""

    __slots__ = ("below", "longest", "name_bytes", "root", "system")

    def __init__(self, root: Hash, system: bool, below: Iterator[tuple[int, Hash, bool, Path, int]]) -> None:
        self.root = root
        self.system = system
        self.below = below
        self.longest = 0
        self.name_bytes = 0

    def take(self, longest: int) -> None:
        """Takes note of the longest path below the subdirectory that was checked last."""
        self.longest = max(self.longest, self.name_bytes + 1 + longest)
        if self.longest > MAXIMUM_PATH_BYTES:
            raise CorruptRecord(f"it holds a path of more than {MAXIMUM_PATH_BYTES} bytes.")


def _check_name(name: str) -> None:
    try:
        valid = parse_path(name) == (name,)
    except InvalidPath:
        valid = False
    if not valid:
        raise CorruptRecord("it holds a name that no path may have.")


def _check_link(entry: Entry) -> None:
    target = entry.target or ""
    try:
        check_link_target(target)
    except InvalidInput as error:
        raise CorruptRecord("it holds a link whose target is not an absolute path.") from error
    encoded = target.encode()
    if entry.size != len(encoded) or entry.hash != hash_object(ObjectKind.CHUNK, encoded):
        raise CorruptRecord("a link states another size or hash than its target has.")
