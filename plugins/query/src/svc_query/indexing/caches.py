"""What a process remembers of the index between queries: decoded documents, bitmaps, open readers.

All of it follows from the rows. A *moment* is the state that one transaction left; moments are immutable once
made, and each takes what it can from the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from pyroaring import BitMap

from svc.plugin import Path, ViewStorage, held_across_waits, in_turns, native_lock
from svc_query.api import Value
from svc_query.indexing import keys
from svc_query.indexing.rows import ConfigurationRow, JobRow, State, decode_document, decode_row
from svc_query.indexing.table import LONG, NONE, read_state
from svc_query.snapshot import Document

__all__ = ["Caches", "IndexedDocument", "Moment", "SharedReader"]

_NO_PLACES: Mapping[str, int] = {}
_MOST_SLICES = 256


class IndexedDocument(Document, frozen=True, gc=False):
    """A document of the table; ``configuration`` is the number of what is indexed of it.

    ``long`` are the fields whose values have rows of their own, with their position.
    """

    configuration: int = 0
    long: Mapping[str, int] = _NO_PLACES


class SharedReader:
    """A reader that several queries use; it is closed when it was replaced and none uses it any more.

    ``name`` is what it was opened at.
    """

    def __init__(self, name: object, reader: Any) -> None:
        self.name = name
        self.reader = reader
        self._users = 0
        self._is_replaced = False
        self._mutex = native_lock()

    def hold(self) -> bool:
        """Begins to use it; False when it is closed already."""
        with self._mutex:
            if self._is_replaced and not self._users:
                return False
            self._users += 1
            return True

    def release(self) -> None:
        """Ends to use it."""
        with self._mutex:
            self._users -= 1
            closes = self._is_replaced and not self._users
        if closes:
            self._close()

    def replace(self) -> None:
        """Another has taken its place."""
        with self._mutex:
            closes = not self._is_replaced and not self._users
            self._is_replaced = True
        if closes:
            self._close()

    def _close(self) -> None:
        close = getattr(self.reader, "close", None)
        if close is not None:
            close()


class Moment:
    """The table as one transaction left it.

    Attributes:
        dead: numbers of dead documents.
        live: numbers of those that live.
        tail: those that live and are not flushed.
        below: numbers at and below a path, by path, as far as they were asked for.
        jobs: rows of all jobs, once they were asked for.
        nothing_waits: whether no file waited for its parser when that was asked for first.
    """

    def __init__(self, state: State, chunks: dict[int, tuple[bytes, BitMap]], dead: BitMap) -> None:
        self.state = state
        self.chunks = chunks
        self.dead = dead
        self.live = BitMap()
        if state.next_number > 1:
            self.live.add_range(1, state.next_number)
            self.live -= dead
        self.tail: Sequence[IndexedDocument] = ()
        self.below: dict[Path, BitMap] = {}
        self.jobs: Sequence[JobRow] | None = None
        self.nothing_waits: bool | None = None
        self._tail_documents: Mapping[int, IndexedDocument] | None = None
        self._tail_numbers: BitMap | None = None

    @property
    def tail_documents(self) -> Mapping[int, IndexedDocument]:
        """The documents of the tail by number; not to be changed."""
        found = self._tail_documents
        if found is None:
            found = self._tail_documents = {document.id: document for document in self.tail}
        return found

    @property
    def tail_numbers(self) -> BitMap:
        """The numbers of the tail; not to be changed."""
        found = self._tail_numbers
        if found is None:
            found = self._tail_numbers = BitMap([document.id for document in self.tail])
        return found

    @property
    def name(self) -> tuple[bytes, int]:
        """What it is known by."""
        return self.state.epoch, self.state.change


class Caches:
    """What one process remembers of the index of one database."""

    def __init__(self) -> None:
        self._moment: Moment | None = None
        self._configurations: dict[tuple[bytes, int], ConfigurationRow] = {}
        self._places: dict[tuple[bytes, int], Sequence[tuple[str, bool]]] = {}
        self._readers: dict[tuple[FilePath, int], SharedReader] = {}
        self._slices: dict[tuple[bytes, bytes, Path], BitMap] = {}
        self._directories: tuple[tuple[bytes, int], Any] | None = None
        self._indexes: tuple[tuple[bytes, int], Any] | None = None
        self._tails: dict[Any, Any] = {}
        self._opened: SharedReader | None = None
        self._mutex = native_lock()
        self._making_moments = native_lock()
        self._making_tails = native_lock()

    # -- moments -------------------------------------------------------------------------------

    def moment(self, storage: ViewStorage) -> Moment:
        """Returns the moment of a transaction; one thread or greenlet at a time makes one."""
        state = read_state(storage)
        last = self._moment
        if last is not None and last.name == (state.epoch, state.change):
            return last
        with held_across_waits(self._making_moments):
            last = self._moment
            if last is not None and last.name == (state.epoch, state.change):
                return last
            if last is not None and last.state.epoch != state.epoch:
                last = None
            if last is not None and last.state.change > state.change:
                return self._make(storage, state, None)
            moment = self._moment = self._make(storage, state, last)
        return moment

    def _make(self, storage: ViewStorage, state: State, last: Moment | None) -> Moment:
        if last is not None and last.state.dead == state.dead:
            moment = Moment(state, last.chunks, last.dead)
        else:
            chunks: dict[int, tuple[bytes, BitMap]] = {}
            known = {} if last is None else last.chunks
            for key, value in storage.scan(keys.DEAD):
                high = int.from_bytes(key[1:], "big")
                found = known.get(high)
                chunks[high] = (
                    found if found is not None and found[0] == value else (value, BitMap.deserialize(value))
                )
            dead = BitMap.union(*[bitmap for _, bitmap in chunks.values()]) if chunks else BitMap()
            moment = Moment(state, chunks, dead)
        moment.tail = self._tail(storage, moment, last)
        return moment

    def _tail(self, storage: ViewStorage, moment: Moment, last: Moment | None) -> Sequence[IndexedDocument]:
        state = moment.state
        first = state.flushed
        documents: list[IndexedDocument] = []
        if last is not None and last.state.next_number > first:
            live = moment.live
            documents = [document for document in last.tail if document.id >= first and document.id in live]
            first = last.state.next_number
        for number in in_turns(range(first, state.next_number)):
            found = self.document(storage, state.epoch, number)
            if found is not None:
                documents.append(found)
        return documents

    # -- documents -----------------------------------------------------------------------------

    def document(self, storage: ViewStorage, epoch: bytes, number: int) -> IndexedDocument | None:
        """Returns a document that lives."""
        value = storage.get(keys.number_key(keys.DOCUMENT, number))
        if value is None:
            return None
        row = decode_document(value)
        fields: dict[str, Sequence[Value]] = {}
        long = _NO_PLACES
        if row.values:
            places = self._places.get((epoch, row.configuration))
            if places is None:
                places = self._find_places(storage, epoch, row.configuration)
            for place, found in enumerate(row.values):
                if found.__class__ is list:
                    name, is_array = places[place]
                    fields[name] = (
                        [tuple(one) if one is not None else None for one in found] if is_array else found
                    )
                elif found == LONG:
                    long = {**long, places[place][0]: place}
                else:
                    assert found == NONE, "values are a list, none, or long"
        return IndexedDocument(
            number,
            tuple(row.path.split("\x01")),
            row.size,
            row.content_type,
            row.created_ms,
            row.updated_ms,
            row.hash,
            fields,
            row.configuration,
            long,
        )

    def configuration(self, storage: ViewStorage, epoch: bytes, number: int) -> ConfigurationRow:
        """Returns a configuration that a document of the transaction has."""
        row = self._configurations.get((epoch, number))
        if row is None:
            value = storage.get(keys.number_key(keys.CONFIGURATION, number))
            assert value is not None, "a configuration that documents have is there"
            row = decode_row(ConfigurationRow, value)
            if len(self._configurations) > 10_000:
                self._configurations, self._places = {}, {}
            self._configurations[epoch, number] = row
        return row

    def _find_places(self, storage: ViewStorage, epoch: bytes, number: int) -> Sequence[tuple[str, bool]]:
        row = self.configuration(storage, epoch, number)
        places = [(field.name, field.value_type == "array") for field in row.fields if field.source]
        self._places[epoch, number] = places
        return places

    # -- readers, and what is made of them -----------------------------------------------------

    def reader(
        self, directory: FilePath, number: int, manifest: bytes, open_reader: Callable[[Any], Any]
    ) -> SharedReader:
        """Returns a reader of an index at a manifest, held for the caller, who releases it."""
        name = directory, number
        known = self._readers.get(name)
        if known is not None and known.name == manifest and known.hold():
            return known
        made = SharedReader(manifest, open_reader(None if known is None else known.reader))
        made.hold()
        with self._mutex:
            replaced = self._readers.get(name)
            self._readers[name] = made
        if replaced is not None:
            replaced.replace()
        return made

    def opened(self, name: object, make: Callable[[], Any]) -> SharedReader:
        """Returns what queries of one moment share, held for the caller, who releases it.

        ``name`` is of the moment, and of whatever else it depends on. What ``make`` made is closed when it
        was replaced by that of another moment, and none uses it.
        """
        known = self._opened
        if known is not None and known.name == name and known.hold():
            return known
        made = SharedReader(name, make())
        made.hold()
        self._replace_opened(made)
        return made

    def _replace_opened(self, made: SharedReader | None) -> None:
        with self._mutex:
            replaced, self._opened = self._opened, made
        if replaced is not None:
            replaced.replace()

    def forget_readers(self, directory: FilePath, kept: set[int]) -> None:
        """Lets go of readers of indexes that are no more, or of another directory."""
        with self._mutex:
            gone = [name for name in self._readers if name[0] != directory or name[1] not in kept]
            removed = [self._readers.pop(name) for name in gone]
        for shared in removed:
            shared.replace()

    def slice(self, epoch: bytes, manifest: bytes, path: Path, make: Callable[[], BitMap]) -> BitMap:
        """Returns what a slice of the index of paths holds, dead ones too."""
        name = epoch, manifest, path
        found = self._slices.get(name)
        if found is None:
            found = make()
            if len(self._slices) >= _MOST_SLICES:
                self._slices = {}
            self._slices[name] = found
        return found

    def indexes(self, state: State, make: Callable[[], Any]) -> Any:
        """Returns the rows of all indexes; not to be changed."""
        name = state.epoch, state.manifests
        found = self._indexes
        if found is None or found[0] != name:
            found = self._indexes = name, make()
        return found[1]

    def directories(self, state: State, make: Callable[[], Any]) -> Any:
        """Returns what was made of the configurations of all directories."""
        name = state.epoch, state.directories
        found = self._directories
        if found is None or found[0] != name:
            found = self._directories = name, make()
        return found[1]

    def library_tail(self, number: int, make: Callable[[Any], Any]) -> Any:
        """Returns the index in memory of the tail of an index; one thread at a time makes it."""
        with held_across_waits(self._making_tails):
            self._tails[number] = found = make(self._tails.get(number))
        return found

    def close(self) -> None:
        """Lets go of all readers."""
        self._replace_opened(None)
        self.forget_readers(FilePath(), set())
        self._tails = {}
