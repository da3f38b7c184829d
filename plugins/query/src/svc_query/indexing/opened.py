"""The readers of the indexes as one moment has them: opened once, shared by all queries of that moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pyroaring import BitMap

from svc.errors import CorruptRecord
from svc_query.api import LibraryIndexType, TermIndexType
from svc_query.indexing import keys
from svc_query.indexing.caches import SharedReader
from svc_query.indexing.damage import DamagedIndex
from svc_query.indexing.flushing import SOMETIMES_MISSING, index_directory
from svc_query.indexing.own_types import PresenceIndexType
from svc_query.indexing.rows import IndexRow, decode_row
from svc_query.indexing.table import PATH_INDEX, PRESENCE_INDEX
from svc_query.indexing.tails import TailInLibrary, TailInTerms
from svc_query.snapshot import VIRTUAL_FIELDS, FieldIndex

if TYPE_CHECKING:
    from svc_query.indexing.snapshot import IndexSnapshot
    from svc_query.segments import TermIndexReader

__all__ = ["OpenedIndexes"]

_PRESENCE = PresenceIndexType()
_NONE = BitMap()
_NO_OPTIONS: Mapping[str, Any] = {}
_FEW_OTHERS = 0.05

IndexName = tuple[str, str, str, int]


class _IndexRows(NamedTuple):
    """Numbers and rows of all indexes: there may be many thousands."""

    by_name: dict[IndexName, tuple[int, IndexRow]]
    by_field: dict[str, list[tuple[int, IndexRow]]]
    untaken: dict[int, BitMap]


class PathIndex(NamedTuple):
    """The driver's own index of paths: all that was flushed, as ``manifest`` names it.

    Attributes:
        ascending: documents of each segment in which numbers increase with the paths; not to be changed.
        others: a reader of the other segments.
        is_ascending: whether nearly all documents are in the former.
    """

    reader: TermIndexReader
    manifest: bytes
    ascending: Sequence[BitMap]
    others: TermIndexReader
    is_ascending: bool


class OpenedIndexes:
    """The indexes that queries of one moment have asked for; each of them once.

    Whoever uses it holds it, by the ``SharedReader`` that it stands in; the last one closes it.
    """

    def __init__(self, files: FilePath) -> None:
        self._files = files
        self._held: list[SharedReader] = []
        self._readers: dict[int, Any] = {}
        self._with_tail: dict[int, Any] = {}
        self._untaken_tails: dict[int, BitMap] = {}
        self._fields: dict[str, Sequence[FieldIndex]] = {}
        self._rows: _IndexRows | None = None
        self._paths: PathIndex | None = None

    def close(self) -> None:
        """Ends the use of all readers."""
        held, self._held = self._held, []
        for shared in held:
            shared.release()

    def indexes(self, snapshot: IndexSnapshot, field: str) -> Sequence[FieldIndex]:
        """Returns the indexes over a field; the driver's own index of presence is among them."""
        found = self._fields.get(field)
        if found is None:
            found = self._fields[field] = list(self._find_indexes(snapshot, field))
        return found

    def rows(self, snapshot: IndexSnapshot) -> dict[IndexName, tuple[int, IndexRow]]:
        """Returns number and row of every index, by name."""
        return self._all_rows(snapshot).by_name

    def path_index(self, snapshot: IndexSnapshot) -> PathIndex | None:
        """Returns the index of the flushed paths; None before the first flush."""
        if self._paths is None:
            number, row = self.rows(snapshot)[PATH_INDEX]
            if row.manifest is not None:
                reader = self._reader(snapshot, number, row, None)
                ascending, others = reader.apart()
                most = _FEW_OTHERS * sum(map(len, ascending))
                is_ascending = others.count_range(None, None) <= most
                self._paths = PathIndex(reader, row.manifest, ascending, others, is_ascending)
        return self._paths

    def _find_indexes(self, snapshot: IndexSnapshot, field: str) -> Iterator[FieldIndex]:
        number, presence = self.rows(snapshot)[PRESENCE_INDEX]
        if field not in VIRTUAL_FIELDS or field in SOMETIMES_MISSING:
            reader = self._terms(snapshot, number, presence, None, _NO_OPTIONS)
            yield FieldIndex(field, _PRESENCE, _NO_OPTIONS, reader)
        types = snapshot.extensions.types
        for number, row in self._all_rows(snapshot).by_field.get(field, ()):
            if not row.type or row.problem:
                continue
            index_type = types.get(row.type)
            if index_type is None or index_type.format != row.format:
                continue
            options = _options(row.options)
            untaken = self._all_rows(snapshot).untaken.get(number, _NONE)
            if isinstance(index_type, LibraryIndexType):
                reader = self._reader(snapshot, number, row, index_type)
                tail = None
                if snapshot.moment.tail:
                    made = self._library_tail(snapshot, number, row, index_type, options)
                    tail = made.tail.reader(reader)
                    untaken = untaken | made.untaken
                yield FieldIndex(field, index_type, options, reader, tail, untaken)
            else:
                reader = self._terms(snapshot, number, row, index_type, options)
                untaken = untaken | self._untaken_tails.get(number, _NONE)
                yield FieldIndex(field, index_type, options, reader, untaken=untaken)

    def _all_rows(self, snapshot: IndexSnapshot) -> _IndexRows:
        if self._rows is None:
            self._rows = snapshot.caches.indexes(snapshot.moment.state, lambda: self._read_rows(snapshot))
        return self._rows

    def _read_rows(self, snapshot: IndexSnapshot) -> _IndexRows:
        found: dict[IndexName, tuple[int, IndexRow]] = {}
        for key, value in snapshot.storage.scan(keys.INDEX):
            row = decode_row(IndexRow, value)
            found[row.name] = int.from_bytes(key[1:], "big"), row
        for name in (PATH_INDEX, PRESENCE_INDEX):
            found.setdefault(name, (0, IndexRow(*name)))
        snapshot.caches.forget_readers(self._files, {number for number, _ in found.values()})
        by_field: dict[str, list[tuple[int, IndexRow]]] = {}
        for pair in found.values():
            by_field.setdefault(pair[1].field, []).append(pair)
        untaken = {
            int.from_bytes(key[1:], "big"): BitMap.deserialize(value)
            for key, value in snapshot.storage.scan(keys.UNTAKEN)
        }
        return _IndexRows(found, by_field, untaken)

    def _reader(self, snapshot: IndexSnapshot, number: int, row: IndexRow, index_type: Any) -> Any:
        from svc_query.segments import TermIndexReader

        reader = self._readers.get(number)
        if reader is not None:
            return reader
        manifest, directory = row.manifest, index_directory(self._files, number)
        if isinstance(index_type, LibraryIndexType):
            if manifest is None:
                reader = self._readers[number] = index_type.open_tail(json.loads(row.options)).reader()
                return reader

            def opens(before: Any) -> Any:
                del before
                assert manifest is not None, "it was looked at"
                return index_type.open_reader(directory, json.loads(row.options), manifest)

        else:
            ordered = row.name == PATH_INDEX or (isinstance(index_type, TermIndexType) and index_type.ordered)

            def opens(before: Any) -> Any:
                return TermIndexReader(directory, manifest, ordered=ordered, before=before)

        try:
            shared = snapshot.caches.reader(self._files, number, manifest or b"", opens)
        except FileNotFoundError as error:
            reason = FileNotFoundError(f"{FilePath(error.filename or str(error)).name} is not there")
            raise DamagedIndex(number, row, reason, missing=True) from error
        except (CorruptRecord, OSError) as error:
            raise DamagedIndex(number, row, error) from error
        self._held.append(shared)
        reader = self._readers[number] = shared.reader
        return reader

    def _terms(
        self,
        snapshot: IndexSnapshot,
        number: int,
        row: IndexRow,
        index_type: Any,
        options: Mapping[str, Any],
    ) -> Any:
        """A reader of the terms of an index: of its files, and of the tail where that is not too long."""
        found = self._with_tail.get(number)
        if found is not None:
            return found
        found = self._reader(snapshot, number, row, index_type)
        if snapshot.knows_tail and snapshot.moment.tail:
            state = snapshot.moment.state
            mark = (state.epoch, state.flushed, row.name)

            def make(known: TailInTerms | None) -> TailInTerms:
                if known is None or known.mark != mark:
                    known = TailInTerms(mark, state.flushed, index_type, options)
                if known.upto < state.next_number:
                    known.add(snapshot, row, state.next_number)
                return known

            tail: TailInTerms = snapshot.caches.library_tail(number, make)
            found = found.beside(tail.tail)
            self._untaken_tails[number] = tail.untaken
        self._with_tail[number] = found
        return found

    def _library_tail(
        self,
        snapshot: IndexSnapshot,
        number: int,
        row: IndexRow,
        index_type: LibraryIndexType,
        options: Mapping[str, Any],
    ) -> TailInLibrary:
        state = snapshot.moment.state
        mark = (state.epoch, state.flushed, row.name)

        def make(known: TailInLibrary | None) -> TailInLibrary:
            if known is None or known.mark != mark:
                known = TailInLibrary(mark, state.flushed, index_type.open_tail(options))
            if known.upto < state.next_number:
                known.add(snapshot, row, state.next_number)
            return known

        found: TailInLibrary = snapshot.caches.library_tail(number, make)
        return found


@lru_cache(maxsize=256)
def _options(text: str) -> Mapping[str, Any]:
    options: Mapping[str, Any] = json.loads(text)
    return options
