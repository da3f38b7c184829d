"""Objects that are imported, together with those of the importing database.

An object that neither has is refused, and so is a system object in place of a user object, or the reverse.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from svc.errors import CorruptRecord, NotFound
from svc.hashing import Hash, ObjectKind
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT, ObjectStore
from svc.tree import Node, check_node, decode_node, empty_payload
from svc_maintenance.transfer.records import FilePlace, ObjectSource

__all__ = ["JoinedObjects"]

_CACHED_NODES = 2048
_PAUSE_EVERY = 8
_EMPTY = {EMPTY_ROOT: False, EMPTY_SYSTEM_ROOT: True}


class JoinedObjects:
    """Reads objects of a file, and of the database for what the file does not have."""

    def __init__(
        self, file: ObjectSource, target: ObjectStore | None, pause: Callable[[], None] = lambda: None
    ) -> None:
        self._file = file
        self._target = target
        self._pause = pause
        self._reads = 0
        self._nodes: OrderedDict[Hash, Node] = OrderedDict()
        self._empty = decode_node(empty_payload())

    def in_file(self, hash: Hash) -> FilePlace | None:
        """Returns where in the file an object lies, or None."""
        return self._file.find(hash)

    def is_known(self, hash: Hash) -> bool:
        """Whether an object comes from the database, where it was checked before."""
        return hash in _EMPTY or self._file.find(hash) is None

    def require(
        self, hash: Hash, kind: ObjectKind, system: bool, *, before: int | None = None
    ) -> tuple[FilePlace | None, int]:
        """Makes sure that an object which another one names is there, and is of the right kind.

        One of the file must lie before the one that names it, whose ordinal is ``before``. Returns its place
        in the file (None when the database has it), and the bytes of its content; else ``CorruptRecord``.
        """
        if hash in _EMPTY:
            if kind is not ObjectKind.NODE or _EMPTY[hash] != system:
                raise CorruptRecord("an object of another tree is named.")
            return None, len(empty_payload())
        place = self._file.find(hash)
        if place is not None:
            if place.kind != kind or bool(place.system) != system:
                raise CorruptRecord("an object of another kind or tree is named.", offset=place.offset)
            if before is not None and place.ordinal >= before:
                raise CorruptRecord("an object stands behind one that names it.", offset=place.offset)
            return place, place.raw_length
        known = self._target.index.find_stored(hash) if self._target is not None else None
        if known is None:
            raise _missing(hash)
        if known.kind != kind or bool(known.system) != system:
            raise CorruptRecord("an object of another kind or tree is named.", hash=hash.hex())
        return None, known.raw_length

    def content(self, hash: Hash, kind: ObjectKind) -> bytes:
        """Returns an object's content; that of the file is verified down to its identity."""
        place = self._file.find(hash)
        if place is not None:
            return self._file.content(hash, place)
        if self._target is None:
            raise _missing(hash)
        try:
            return self._target.read(hash, kind)
        except NotFound:
            raise _missing(hash) from None

    def read_node(self, hash: Hash) -> Node:
        """Returns a directory node; one of the file is verified, and must be spelled in the one valid way."""
        if hash in _EMPTY:
            return self._empty
        node = self._nodes.get(hash)
        if node is not None:
            return node
        place = self._file.find(hash)
        if place is None:
            self.require(hash, ObjectKind.NODE, self._is_of_system(hash))
            assert self._target is not None
            return self._target.read_node(hash)
        if place.kind != ObjectKind.NODE:
            raise CorruptRecord("an object of another kind is named.", offset=place.offset)
        self._reads += 1
        if self._reads % _PAUSE_EVERY == 0:
            self._pause()
        node = check_node(self._file.content(hash, place))
        self._nodes[hash] = node
        if len(self._nodes) > _CACHED_NODES:
            self._nodes.popitem(last=False)
        return node

    def _is_of_system(self, hash: Hash) -> bool:
        known = self._target.index.find_stored(hash) if self._target is not None else None
        return known is not None and bool(known.system)


def _missing(hash: Hash) -> CorruptRecord:
    return CorruptRecord("an object is named that neither the file nor the database holds.", hash=hash.hex())
