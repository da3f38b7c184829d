"""The index as a query sees it: ``svc_query.snapshot.Snapshot`` over the rows of one transaction."""

from __future__ import annotations

import heapq
import json
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from pyroaring import BitMap

from svc.errors import CorruptRecord, DamagedView
from svc.plugin import Path, Version, ViewStorage
from svc_query.api import (
    MAXIMUM_TERM_BYTES,
    LibraryIndexType,
    LibraryTail,
    TermIndexType,
    Value,
)
from svc_query.index_configuration import DirectoryConfiguration
from svc_query.indexing import keys
from svc_query.indexing.caches import Caches, IndexedDocument, Moment, SharedReader
from svc_query.indexing.counting import count_waiting, reindexes
from svc_query.indexing.coverage import Directories
from svc_query.indexing.damage import DamagedIndex
from svc_query.indexing.flushing import SOMETIMES_MISSING, index_directory
from svc_query.indexing.own_types import PresenceIndexType
from svc_query.indexing.reconciling import Extensions
from svc_query.indexing.rows import IndexRow, JobRow, decode_path, decode_row, decode_texts
from svc_query.indexing.table import PATH_INDEX, PRESENCE_INDEX, paths_in_order
from svc_query.indexing.tails import TailInLibrary, TailInTerms
from svc_query.indexing.virtual_values import VIRTUAL_VALUES
from svc_query.snapshot import VIRTUAL_FIELDS, Coverage, Document, FieldIndex, Progress

__all__ = ["IndexSnapshot"]

_PRESENCE = PresenceIndexType()
_NO_OPTIONS: Mapping[str, Any] = {}
_MOST_IN_MEMORY = 8_192
"""So many documents of a tail have their terms in memory; those of a longer one, in a bulk, are tested."""


class _IndexRows(NamedTuple):
    """Numbers and rows of all indexes: there may be many thousands."""

    by_name: dict[tuple[str, str, str, int], tuple[int, IndexRow]]
    by_field: dict[str, list[tuple[int, IndexRow]]]


class IndexSnapshot:
    """All documents as one transaction shows them; valid inside the call that gave it.

    Args:
        storage: the rows.
        caches: what the process remembers.
        extensions: index types in use.
        sequence: number of a commit that is in the rows.
        head: returns the tree of HEAD; None: configurations that no job has come to do not count.

    Attributes:
        storage: the rows, for what else of the plugin reads them.
        caches: what the process remembers.
    """

    indexed = True

    def __init__(
        self,
        storage: ViewStorage,
        caches: Caches,
        extensions: Extensions,
        sequence: int,
        head: Callable[[], Version] | None = None,
    ) -> None:
        self._head = head
        self.storage = storage
        self.caches = caches
        self._extensions = extensions
        self._moment: Moment = caches.moment(storage)
        self._held: list[SharedReader] = []
        self._readers: dict[int, Any] = {}
        self._indexes: _IndexRows | None = None
        self._fields: dict[str, Sequence[FieldIndex]] = {}
        self._with_tail: dict[int, Any] = {}
        self.epoch = self._moment.state.epoch
        self.sequence = max(sequence, self._moment.state.sequence)
        self.knows_tail = len(self._moment.tail) <= _MOST_IN_MEMORY

    def close(self) -> None:
        """Ends the use of readers; the snapshot is not used any more."""
        held, self._held = self._held, []
        for shared in held:
            shared.release()

    @property
    def types(self) -> frozenset[str]:
        """Names of the index types in use."""
        return frozenset(self._extensions.types)

    # -- documents -----------------------------------------------------------------------------

    def live(self) -> BitMap:
        """See ``Snapshot``."""
        return self._moment.live

    def below(self, path: Path) -> BitMap:
        """See ``Snapshot``."""
        if not path:
            return self._moment.live
        found = self._moment.below.get(path)
        if found is None:
            found = self._flushed_below(path) & self._moment.live
            depth = len(path)
            found.update([document.id for document in self._moment.tail if document.path[:depth] == path])
            self._moment.below[path] = found
        return found

    def _flushed_below(self, path: Path) -> BitMap:
        number, row = self._rows()[PATH_INDEX]
        if row.manifest is None:
            return BitMap()
        return self.caches.slice(self.epoch, row.manifest, path, lambda: self._slice(number, row, path))

    def _slice(self, number: int, row: IndexRow, path: Path) -> BitMap:
        reader = self._reader(number, row, None)
        exact, prefix = keys.key_of_path(path), keys.below_key(path)
        if len(prefix) <= MAXIMUM_TERM_BYTES:
            found: BitMap = reader.postings_range(prefix, prefix[:-1] + b"\x02")
            found |= reader.postings(exact)
            return found
        # Terms are cut: those that are long enough are looked at.
        candidates = reader.postings(exact[:MAXIMUM_TERM_BYTES])
        depth = len(path)
        return BitMap(
            [document.id for document in self.documents(candidates) if document.path[:depth] == path]
        )

    def count_below(self, path: Path) -> int:
        """See ``Snapshot``."""
        return len(self.below(path)) if path else self._moment.state.documents

    def in_path_order(
        self, path: Path, *, after: Path | None = None, reverse: bool = False, among: BitMap | None = None
    ) -> Iterator[tuple[Path, int]]:
        """See ``Snapshot``."""
        edge = None if after is None else keys.key_of_path(after)
        if reverse or among is not None:
            pairs = self._in_order(path, edge, self._moment.live if among is None else among, reverse)
        else:
            pairs = paths_in_order(self.storage, path, edge)
        for key, number in pairs:
            yield keys.path_of_key(key), number

    def _in_order(
        self, path: Path, edge: bytes | None, among: BitMap, reverse: bool
    ) -> Iterator[tuple[bytes, int]]:
        """Yields (key of the path, number) of some documents, by the index of paths."""
        exact, prefix = keys.key_of_path(path), keys.below_key(path)
        here: list[tuple[bytes, int]] = []
        if path and (edge is None or (exact < edge if reverse else edge < exact)):
            # The path itself, where it is a document's, comes first.
            here = [pair for pair in islice(paths_in_order(self.storage, path), 1) if pair[0] == exact]
        if not reverse:
            yield from here
        pairs = self._flushed_in_order(prefix, edge, among, reverse)
        tail = self._tail_in_order(prefix, among, reverse)
        if tail:
            pairs = heapq.merge(pairs, tail, reverse=reverse)
        for key, number in pairs:
            if (edge is None or (key < edge if reverse else edge < key)) and key != exact:
                yield key, number
        if reverse:
            yield from here

    def _tail_in_order(self, prefix: bytes, among: BitMap, reverse: bool) -> list[tuple[bytes, int]]:
        pairs = self._moment.tail_in_order()
        low = bisect_left(pairs, (prefix,)) if prefix else 0
        high = bisect_left(pairs, (prefix[:-1] + b"\x02",)) if prefix else len(pairs)
        found = [pair for pair in pairs[low:high] if pair[1] in among]
        return found[::-1] if reverse else found

    def _flushed_in_order(
        self, prefix: bytes, edge: bytes | None, among: BitMap, reverse: bool
    ) -> Iterator[tuple[bytes, int]]:
        number, row = self._rows()[PATH_INDEX]
        if row.manifest is None:
            return
        reader = self._reader(number, row, None)
        low = prefix[:MAXIMUM_TERM_BYTES] or None
        high = None
        if prefix:
            is_cut = len(prefix) > MAXIMUM_TERM_BYTES
            high = prefix[:MAXIMUM_TERM_BYTES] + b"\0" if is_cut else prefix[:-1] + b"\x02"
        if edge is not None:
            # A term that was cut is the same for what stands before and behind it.
            cut = edge[:MAXIMUM_TERM_BYTES]
            if not reverse:
                low = cut if low is None else max(low, cut)
            else:
                cut += b"" if len(edge) < MAXIMUM_TERM_BYTES else b"\0"
                high = cut if high is None else min(high, cut)
        for term, numbers in reader.scan_among(low, high, among, reverse=reverse):
            if not numbers:
                yield term, 0
            elif len(term) < MAXIMUM_TERM_BYTES:
                for one in numbers:
                    yield term, one
            else:
                found = [(keys.key_of_path(one.path), one.id) for one in self.documents(numbers)]
                yield from sorted([pair for pair in found if pair[0].startswith(prefix)], reverse=reverse)

    def document(self, number: int) -> Document | None:
        """See ``Snapshot``."""
        found = self.caches.document(self.storage, self.epoch, number)
        if found is None and number in self._moment.live:
            raise DamagedView("The row of a document is not there.")
        return found

    def paths_of(self, numbers: Iterable[int]) -> Iterator[tuple[Path, int]]:
        """See ``Snapshot``."""
        get, kind = self.storage.get, keys.DOCUMENT
        for number in numbers:
            value = get(keys.number_key(kind, number))
            if value is not None:
                yield decode_path(value), number

    def documents(self, numbers: Iterable[int]) -> Iterator[Document]:
        """See ``Snapshot``."""
        storage, epoch, find = self.storage, self.epoch, self.caches.document
        live = self._moment.live
        for number in numbers:
            document = find(storage, epoch, number)
            if document is not None:
                yield document
            elif number in live:
                raise DamagedView("The row of a document is not there.")

    def values(self, document: Document, field: str) -> Sequence[Value]:
        """See ``Snapshot``."""
        found = document.fields.get(field)
        if found is not None:
            return found
        if field in VIRTUAL_FIELDS:
            virtual: Sequence[Value] = VIRTUAL_VALUES[field](document)
            return virtual
        if isinstance(document, IndexedDocument):
            place = document.long.get(field)
            if place is not None:
                return self._long_values(document, place)
        return ()

    def _long_values(self, document: IndexedDocument, place: int) -> Sequence[Value]:
        stored = self.storage.get(keys.text_key(document.id, place))
        if stored is None:
            raise DamagedView("The row of a long text is not there.")
        return [tuple(value) if isinstance(value, list) else value for value in decode_texts(stored)]

    def tail(self) -> Sequence[Document]:
        """See ``Snapshot``."""
        return self._moment.tail

    # -- indexes -------------------------------------------------------------------------------

    def indexes(self, field: str) -> Sequence[FieldIndex]:
        """See ``Snapshot``; the driver's own index of presence is among them."""
        found = self._fields.get(field)
        if found is None:
            found = self._fields[field] = list(self._find_indexes(field))
        return found

    def _find_indexes(self, field: str) -> Iterator[FieldIndex]:
        number, presence = self._rows()[PRESENCE_INDEX]
        if field not in VIRTUAL_FIELDS or field in SOMETIMES_MISSING:
            yield FieldIndex(field, _PRESENCE, _NO_OPTIONS, self._terms(number, presence, None, _NO_OPTIONS))
        for number, row in self._rows_by_field().get(field, ()):
            if not row.type or row.problem:
                continue
            index_type = self._extensions.types.get(row.type)
            if index_type is None or index_type.format != row.format:
                continue
            options = _options(row.options)
            if isinstance(index_type, LibraryIndexType):
                reader = self._reader(number, row, index_type)
                tail = self._library_tail(number, row, index_type, options).reader(reader)
                yield FieldIndex(field, index_type, options, reader, tail)
            else:
                yield FieldIndex(field, index_type, options, self._terms(number, row, index_type, options))

    def _rows(self) -> dict[tuple[str, str, str, int], tuple[int, IndexRow]]:
        if self._indexes is None:
            self._indexes = self.caches.indexes(self._moment.state, self._read_rows)
        return self._indexes.by_name

    def _rows_by_field(self) -> dict[str, list[tuple[int, IndexRow]]]:
        found: _IndexRows = self.caches.indexes(self._moment.state, self._read_rows)
        return found.by_field

    def _read_rows(self) -> _IndexRows:
        found: dict[tuple[str, str, str, int], tuple[int, IndexRow]] = {}
        for key, value in self.storage.scan(keys.INDEX):
            row = decode_row(IndexRow, value)
            found[row.name] = int.from_bytes(key[1:], "big"), row
        for name in (PATH_INDEX, PRESENCE_INDEX):
            found.setdefault(name, (0, IndexRow(*name)))
        assert self.storage.directory is not None, "the view keeps files"
        self.caches.forget_readers(self.storage.directory, {number for number, _ in found.values()})
        by_field: dict[str, list[tuple[int, IndexRow]]] = {}
        for pair in found.values():
            by_field.setdefault(pair[1].field, []).append(pair)
        return _IndexRows(found, by_field)

    def _reader(self, number: int, row: IndexRow, index_type: Any) -> Any:
        from svc_query.segments import TermIndexReader

        reader = self._readers.get(number)
        if reader is not None:
            return reader
        assert self.storage.directory is not None, "the view keeps files"
        files = self.storage.directory
        manifest = row.manifest
        if isinstance(index_type, LibraryIndexType):
            if manifest is None:
                reader = index_type.open_tail(json.loads(row.options)).reader()
                self._readers[number] = reader
                return reader

            def opens(before: Any) -> Any:
                del before
                assert manifest is not None, "it was looked at"
                return index_type.open_reader(
                    index_directory(files, number), json.loads(row.options), manifest
                )

        else:
            ordered = row.name == PATH_INDEX or (isinstance(index_type, TermIndexType) and index_type.ordered)

            def opens(before: Any) -> Any:
                directory = index_directory(files, number)
                return TermIndexReader(directory, manifest, ordered=ordered, before=before)

        try:
            shared = self.caches.reader(self.storage.directory, number, manifest or b"", opens)
        except FileNotFoundError as error:
            reason = FileNotFoundError(f"{FilePath(error.filename or str(error)).name} is not there")
            raise DamagedIndex(number, row, reason, missing=True) from error
        except (CorruptRecord, OSError) as error:
            raise DamagedIndex(number, row, error) from error
        self._held.append(shared)
        reader = self._readers[number] = shared.reader
        return reader

    def damaged_by(self, error: CorruptRecord) -> DamagedIndex | None:
        """Says which index an error of a query is about; None: it is about something else."""
        name, directory = error.details.get("file"), self.storage.directory
        if isinstance(name, str) and directory is not None:
            for number, row in self._rows().values():
                if (index_directory(directory, number) / name).exists():
                    return DamagedIndex(number, row, error)
        return None

    def _terms(self, number: int, row: IndexRow, index_type: Any, options: Mapping[str, Any]) -> Any:
        """A reader of the terms of an index: of its files, and of the tail where that is not too long."""
        found = self._with_tail.get(number)
        if found is not None:
            return found
        found = self._reader(number, row, index_type)
        if self.knows_tail and self._moment.tail:
            state = self._moment.state
            mark = (state.epoch, state.flushed, row.name)

            def make(known: TailInTerms | None) -> TailInTerms:
                if known is None or known.mark != mark:
                    known = TailInTerms(mark, state.flushed, index_type, options)
                if known.upto < state.next_number:
                    known.add(self, row, state.next_number)
                return known

            tail: TailInTerms = self.caches.library_tail(number, make)
            found = found.beside(tail.tail)
        self._with_tail[number] = found
        return found

    def _library_tail(
        self, number: int, row: IndexRow, index_type: LibraryIndexType, options: Mapping[str, Any]
    ) -> LibraryTail:
        state = self._moment.state
        mark = (state.epoch, state.flushed, row.name)

        def make(known: TailInLibrary | None) -> TailInLibrary:
            if known is None or known.mark != mark:
                known = TailInLibrary(mark, state.flushed, index_type.open_tail(options))
            if known.upto < state.next_number:
                known.add(self, row, state.next_number)
            return known

        found: TailInLibrary = self.caches.library_tail(number, make)
        return found.tail

    # -- what is indexed, and how far ----------------------------------------------------------

    def coverage(self, path: Path) -> Coverage:
        """See ``Snapshot``."""
        directories = self.directories()
        if self._head is not None:
            more = self._not_walked(path, directories)
            if more:
                directories = directories.beside(more)
        return directories.coverage(path)

    def _not_walked(self, path: Path, directories: Directories) -> dict[Path, DirectoryConfiguration]:
        """Configurations above a path, and where jobs begin below it, that no job has come to."""
        jobs = self.jobs(path)
        if not jobs:
            return {}
        assert self._head is not None, "whoever asks has it"
        version = self._head()
        places = [path[:depth] for depth in range(len(path) + 1)]
        places += [tuple(job.path.split("\x01")) for job in jobs if job.path]
        found: dict[Path, DirectoryConfiguration] = {}
        for place in places:
            if not directories.knows(place):
                read = self._extensions.configurations.read(version, place)
                if read is not None and read[1].configuration is not None:
                    found[place] = read[1].configuration
        return found

    def directories(self) -> Directories:
        """Returns the configurations of all directories."""
        configurations = self._extensions.configurations

        def make() -> tuple[object, Directories]:
            return configurations, Directories(self.storage, configurations)

        found = self.caches.directories(self._moment.state, make)
        if found[0] is not configurations:
            # Other index types are in use than when it was made.
            return make()[1]
        directories: Directories = found[1]
        return directories

    def jobs(self, path: Path) -> list[JobRow]:
        """Returns the jobs that touch anything at, above or below a path."""
        key = "\x01".join(path)
        found = []
        for _, value in self.storage.scan(keys.JOB):
            job: JobRow = decode_row(JobRow, value)
            if (
                not job.path
                or not key
                or f"{key}\x01".startswith(f"{job.path}\x01")
                or f"{job.path}\x01".startswith(f"{key}\x01")
            ):
                found.append(job)
        return found

    def progress(self, path: Path) -> Progress | None:
        """See ``Snapshot``."""
        jobs = self.jobs(path) or reindexes(self.storage, path)
        if not jobs:
            return None
        done, total = sum(job.done for job in jobs), sum(job.total for job in jobs)
        since_ms = min(job.since_ms for job in jobs)
        eta_ms = None
        if done:
            now_ms = time.time_ns() // 1_000_000
            eta_ms = now_ms + (now_ms - since_ms) * max(0, total - done) // done
        return Progress(min(done, total), total, since_ms, eta_ms)

    def waiting(self, path: Path) -> int:
        """See ``Snapshot``; counts no further than 100,000."""
        return count_waiting(self.storage, path)


@lru_cache(maxsize=256)
def _options(text: str) -> Mapping[str, Any]:
    options: Mapping[str, Any] = json.loads(text)
    return options
