"""What an open database has to do with collections: holds, the horizon, pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from svc.database.collection.record import read_state
from svc.database.holds import Hold, Holds, Phase
from svc.database.version import Version
from svc.hashing import Hash
from svc.log import CollectableStorage
from svc.tree import Entry

if TYPE_CHECKING:
    from svc.database.collection.pins import Pins
    from svc.database.state import SharedState

__all__ = ["CollectionAccess"]


class CollectionAccess:
    """A part of ``Database``."""

    _state: SharedState
    _holds: Holds
    _pins: Pins
    _horizon: tuple[Hash, int] = (b"", 0)
    _collecting: object | None = None

    if TYPE_CHECKING:

        def _require_open(self) -> None: ...

        def _require_writable(self) -> None: ...

    @property
    def holds(self) -> Holds:
        """The holds of this opening, for the kernel's own use."""
        return self._holds

    def hold(self) -> Hold:
        """Keeps everything that is readable now from being collected, until the hold is released.

        Use it as a context manager around what reads a version for long, or looks up objects to use them
        later; take it before the first look. Contents that ``store`` gives and transactions have their own.
        A collection that waits for it destroys nothing, so it should not outlast what it is for. About two
        microseconds; does not block.
        """
        self._require_open()
        return self._holds.take()

    def holds_entry(self, entry: Entry, hold: Hold) -> bool:
        """Whether what an entry names is stored, and stays as long as a hold that was taken before."""
        objects = self._state.objects
        if objects.holds(entry):
            return True
        return objects.index.find(entry.record or entry.hash) is not None and self._may_use_condemned(hold)

    def _may_use_condemned(self, hold: Hold) -> bool:
        """Whether what is set apart may be used: no collection destroys it before the hold ends."""
        generation, phase = self._holds.state()
        if phase is not Phase.GATED or hold.generation < generation:
            return True
        if self.collects:
            return False
        storage = self._state.log.storage
        return not (isinstance(storage, CollectableStorage) and storage.is_collected_by_others())

    def horizon(self) -> int:
        """Returns the number of the first commit whose version is whole; 0 when nothing was collected.

        Of the versions before it only those are left that a ref names, or that a later commit has again.
        About a microsecond where nothing changed.
        """
        root = self._state.head().system_root
        seen, horizon = self._horizon
        if seen != root:
            horizon = read_state(Version(self._state.objects, root)).horizon
            self._horizon = (root, horizon)
        return horizon

    def pin(self, hashes: Iterable[Hash]) -> None:
        """Keeps chunks for a day that a client was told of, and that no version may hold.

        Take a hold before looking whether they are there, and release it after this. Appends to a small file
        in the state directory.

        Raises:
            InsufficientStorage: the disk is full.
        """
        self._require_writable()
        self._pins.add(hashes)

    def pins_since(self, time_ms: int) -> Iterator[Hash]:
        """Yields the chunks that were pinned since a time, for the collection."""
        return self._pins.read(time_ms)

    def may_read_pins(self) -> bool:
        """Whether the present user may read what is pinned, for a collection that only counts."""
        return self._pins.may_be_read()

    def pins_kept_since(self) -> int:
        """Since when pins are kept, Unix milliseconds, for the collection."""
        return self._pins.since()

    def remove_old_pins(self, before_ms: int) -> None:
        """Forgets what was pinned before a time, for the collection."""
        self._pins.remove(before_ms)

    @property
    def collects(self) -> bool:
        """Whether this opening collects now."""
        return self._collecting is not None

    def begin_collecting(self) -> bool:
        """Notes that this opening collects; False where it does already. For the collection."""
        this = object()
        return self.__dict__.setdefault("_collecting", this) is this

    def end_collecting(self) -> None:
        """Takes that back."""
        self.__dict__.pop("_collecting", None)
