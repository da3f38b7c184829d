"""Large contents: cut, hashed and appended to the log while more of them comes.

One window is processed, in a thread if there is an event loop, while the next one is filled.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence

from svc.clock import now_ms
from svc.hashing import Hash, ObjectKind, content_hasher, hash_object
from svc.log import Log
from svc.log.framing import frame_record
from svc.objects.chunking import Chunker, Window
from svc.objects.codecs import Codec, CompressionTrial
from svc.objects.expected_chunks import ExpectedChunks
from svc.objects.file_record import FileRecord
from svc.objects.key_index import PackedPlace, Place, pack_place
from svc.objects.store import OFFERED_CHUNKS, ObjectStore

__all__ = ["LargeContent", "append_pieces"]

_windows: deque[Window] = deque(maxlen=8)
"""Windows that nobody uses: new memory costs as much as filling it."""


class LargeContent:
    """One content on its way into the log; about 4 MiB of it are held. ``finish`` gives its hashes."""

    def __init__(
        self,
        objects: ObjectStore,
        system: bool,
        begin_blocking: Callable[..., Callable[[], None]],
        expected: ExpectedChunks | None = None,
    ) -> None:
        self._objects = objects
        self._system = system
        self._begin_blocking = begin_blocking
        self._chunker = Chunker(system=system, expected=expected)
        self._hasher = content_hasher()
        self._trial = CompressionTrial()
        self._filling = _new_window()
        self._working: tuple[Window, Callable[[], None]] | None = None
        self.chunks: list[tuple[Hash, int]] = []
        self.size = 0
        self.record: Hash = b""
        self.content_hash: Hash = b""
        self.placed: dict[Hash, PackedPlace] = {}

    @property
    def room(self) -> memoryview:
        """Where the next bytes go, at least one; ``take`` says then how many they are."""
        return self._filling.room

    def take(self, count: int) -> None:
        """Takes bytes that were put into ``room``; blocks while a full window before is worked on."""
        window = self._filling
        room = window.room
        self._hasher.update(room[:count])
        self.size += count
        window.size += count
        if count == len(room):
            self._settle()
            self._begin(window)
            self._filling = _new_window()

    def take_bytes(self, content: bytes | bytearray) -> None:
        """Takes bytes from elsewhere."""
        begin = 0
        while begin < len(content):
            room = self.room
            count = min(len(room), len(content) - begin)
            with memoryview(content) as view:
                room[:count] = view[begin : begin + count]
            begin += count
            self.take(count)

    def finish(self) -> None:
        """Stores the rest and the file record."""
        self.content_hash = self._hasher.digest()
        self._settle()
        self._begin(self._filling, is_last=True)
        self._settle()

    def abandon(self) -> None:
        """Waits until nothing of it is worked on any more; what was appended is garbage."""
        with contextlib.suppress(Exception):
            self._settle()

    def _begin(self, window: Window, *, is_last: bool = False) -> None:
        self._working = window, self._begin_blocking(self._store, window, is_last)

    def _settle(self) -> None:
        if self._working is not None:
            window, wait = self._working
            wait()  # who is killed here waits once more, in ``abandon``
            self._working = None
            _windows.append(window)

    def _store(self, window: Window, is_last: bool) -> None:
        """Cuts, hashes and appends what a window brings that is new; blocks."""
        batch = _Batch(self._system)
        cut = list(self._chunker.cut(window, is_last=is_last))
        OFFERED_CHUNKS.add(len(cut))
        self.chunks += [(hash, len(chunk)) for hash, chunk in cut]
        known = self._objects.known(hash for hash, _ in cut)
        for hash, chunk in cut:
            if hash not in known and hash not in batch.places and hash not in self.placed:
                codec, stored = self._trial.compress(chunk)
                batch.add(ObjectKind.CHUNK, hash, stored, codec, len(chunk))
        if is_last:
            hashes, lengths = zip(*self.chunks, strict=True)
            payload = FileRecord(self.size, self.content_hash, hashes, lengths).encode()
            self.record = hash_object(ObjectKind.FILE_RECORD, payload, self._system)
            if not self._system:
                self._objects.cache.put_cut(self.record)
            if not self._objects.index.contains(self.record):
                batch.add(ObjectKind.FILE_RECORD, self.record, payload, Codec.RAW, len(payload))
        if batch.pieces:
            begin = append_pieces(self._objects.log, batch.pieces)
            for hash, place in batch.places.items():
                self.placed[hash] = pack_place(begin + place.offset, *place[1:])


class _Batch:
    """Records that are appended in one piece, uncopied; ``places`` count from the first one's beginning."""

    __slots__ = ("_size", "_system", "_time_ms", "pieces", "places")

    def __init__(self, system: bool) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.places: dict[Hash, Place] = {}
        self._size = 0
        self._system = system
        self._time_ms = now_ms()

    def add(self, kind: ObjectKind, hash: Hash, stored: bytes | memoryview, codec: int, length: int) -> None:
        pieces = frame_record(
            kind, hash, stored, codec=codec, raw_length=length, time_ms=self._time_ms, system=self._system
        )
        self.places[hash] = Place(self._size, len(stored), length, kind, int(self._system), codec)
        self.pieces += pieces
        self._size += sum(map(len, pieces))


def append_pieces(log: Log, pieces: Sequence[bytes | memoryview]) -> int:
    """Appends framed records, unsynced, and lets the disk begin to take them; returns their offset."""
    offset = log.append(pieces)
    log.begin_sync(offset, sum(map(len, pieces)))
    return offset


def _new_window() -> Window:
    try:
        window = _windows.pop()
    except IndexError:
        return Window()
    window.size = 0
    return window
