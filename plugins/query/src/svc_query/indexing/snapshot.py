"""The index as a query sees it: ``svc_query.snapshot.Snapshot`` over the rows of one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyroaring import BitMap

from svc.errors import CorruptRecord, DamagedView
from svc.plugin import Path, Version, ViewStorage
from svc_query.api import (
    MAXIMUM_TERM_BYTES,
    Value,
)
from svc_query.index_configuration import DirectoryConfiguration
from svc_query.indexing import keys
from svc_query.indexing.caches import Caches, IndexedDocument, Moment, SharedReader
from svc_query.indexing.counting import count_waiting, reindexes
from svc_query.indexing.coverage import Directories
from svc_query.indexing.damage import DamagedIndex
from svc_query.indexing.flushing import index_directory
from svc_query.indexing.opened import OpenedIndexes, PathIndex
from svc_query.indexing.own_types import PresenceIndexType
from svc_query.indexing.path_order import some_in_path_order
from svc_query.indexing.path_rows import paths_in_order
from svc_query.indexing.reconciling import Extensions
from svc_query.indexing.rows import JobRow, decode_path, decode_row, decode_texts
from svc_query.indexing.virtual_values import VIRTUAL_VALUES
from svc_query.snapshot import VIRTUAL_FIELDS, Coverage, Document, FieldIndex, Progress

__all__ = ["IndexSnapshot"]

_PRESENCE = PresenceIndexType()
_NO_OPTIONS: Mapping[str, Any] = {}
_MOST_KEPT = 256
_MOST_IN_MEMORY = 20_000
"""So many documents of a tail have their terms in memory; those of a longer one, in a bulk, are tested."""


class IndexSnapshot:
    """All documents as one transaction shows them; valid inside the call that gave it.

    ``sequence`` is the number of a commit that is in the rows. ``head`` returns the tree of HEAD; None:
    configurations that no job has come to do not count.

    Attributes:
        storage: the rows, for what else of the plugin reads them.
        moment: the table as the transaction shows it.
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
        assert storage.directory is not None, "the view keeps files"
        self._head = head
        self.storage = storage
        self.caches = caches
        self.extensions = extensions
        self.moment: Moment = caches.moment(storage)
        self._files = storage.directory
        self._shared: SharedReader = caches.opened((self.moment.name, self._files, extensions), self._open)
        self._opened: OpenedIndexes = self._shared.reader
        self._closed = False
        self._read: dict[int, IndexedDocument] = {}
        self.epoch = self.moment.state.epoch
        self.sequence = max(sequence, self.moment.state.sequence)
        self.knows_tail = len(self.moment.tail) <= _MOST_IN_MEMORY

    def _open(self) -> OpenedIndexes:
        return OpenedIndexes(self._files)

    def close(self) -> None:
        """Ends the use of readers; the snapshot is not used any more."""
        if not self._closed:
            self._closed = True
            self._shared.release()

    @property
    def types(self) -> frozenset[str]:
        """Names of the index types in use."""
        return frozenset(self.extensions.types)

    # -- documents -----------------------------------------------------------------------------

    def live(self) -> BitMap:
        """See ``Snapshot``."""
        return self.moment.live

    def below(self, path: Path) -> BitMap:
        """See ``Snapshot``."""
        if not path:
            return self.moment.live
        found = self.moment.below.get(path)
        if found is None:
            found = self._flushed_below(path) & self.moment.live
            depth = len(path)
            found.update([document.id for document in self.moment.tail if document.path[:depth] == path])
            self.moment.below[path] = found
        return found

    def _flushed_below(self, path: Path) -> BitMap:
        index = self.path_index()
        if index is None:
            return BitMap()
        return self.caches.slice(self.epoch, index.manifest, path, lambda: self._slice(index.reader, path))

    def _slice(self, reader: Any, path: Path) -> BitMap:
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
        return len(self.below(path)) if path else self.moment.state.documents

    def unflushed_below(self, path: Path) -> int:
        """Returns how many documents at and below a path are not in the files of the indexes yet."""
        if not path:
            return len(self.tail())
        numbers, flushed = self.below(path), self.moment.state.flushed
        return len(numbers) - numbers.rank(flushed - 1)

    def in_path_order(
        self, path: Path, *, after: Path | None = None, reverse: bool = False, among: BitMap | None = None
    ) -> Iterator[tuple[Path, int]]:
        """See ``Snapshot``."""
        if reverse or among is not None:
            numbers = self.moment.live if among is None else among
            return some_in_path_order(self, path, after, numbers, reverse)
        edge = None if after is None else keys.key_of_path(after)
        pairs = paths_in_order(self.storage, path, edge)
        return ((keys.path_of_key(key), number) for key, number in pairs)

    @property
    def is_numbered_by_path(self) -> bool:
        """Whether nearly all documents are numbered in the order of their paths."""
        index = self.path_index()
        return index is not None and index.is_ascending

    def path_index(self) -> PathIndex | None:
        """Returns the index of the flushed paths; None before the first flush."""
        return self._opened.path_index(self)

    def document(self, number: int) -> Document | None:
        """See ``Snapshot``."""
        found = self._read.get(number)
        if found is None and number >= self.moment.state.flushed:
            found = self.moment.tail_documents.get(number)
        if found is not None:
            return found
        found = self.caches.document(self.storage, self.epoch, number)
        if found is None:
            if number in self.moment.live:
                raise DamagedView("The row of a document is not there.")
            return None
        if len(self._read) >= _MOST_KEPT:
            self._read = {}
        self._read[number] = found
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
        live = self.moment.live
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
        return self.moment.tail

    # -- indexes -------------------------------------------------------------------------------

    def indexes(self, field: str) -> Sequence[FieldIndex]:
        """See ``Snapshot``; the driver's own index of presence is among them."""
        return self._opened.indexes(self, field)

    def damaged_by(self, error: CorruptRecord) -> DamagedIndex | None:
        """Says which index an error of a query is about; None: it is about something else."""
        name, directory = error.details.get("file"), self.storage.directory
        if isinstance(name, str) and directory is not None:
            for number, row in self._opened.rows(self).values():
                if (index_directory(directory, number) / name).exists():
                    return DamagedIndex(number, row, error)
        return None

    # -- what is indexed, and how far ----------------------------------------------------------

    def coverage(self, path: Path) -> Coverage:
        """See ``Snapshot``."""
        return self._directories_for(path).coverage(path)

    def indexes_for(self, path: Path) -> frozenset[tuple[str, str, str]]:
        """Returns (field, index type, options as canonical JSON) of what is indexed at and below a path."""
        return self._directories_for(path).indexes(path)

    def _directories_for(self, path: Path) -> Directories:
        directories = self.directories()
        if self._head is not None:
            more = self._not_walked(path, directories)
            if more:
                directories = directories.beside(more)
        return directories

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
                read = self.extensions.configurations.read(version, place)
                if read is not None and read[1].configuration is not None:
                    found[place] = read[1].configuration
        return found

    def directories(self) -> Directories:
        """Returns the configurations of all directories."""
        configurations = self.extensions.configurations

        def make() -> tuple[object, Directories]:
            return configurations, Directories(self.storage, configurations)

        found = self.caches.directories(self.moment.state, make)
        if found[0] is not configurations:
            # Other index types are in use than when it was made.
            return make()[1]
        directories: Directories = found[1]
        return directories

    def jobs(self, path: Path) -> list[JobRow]:
        """Returns the jobs that touch anything at, above or below a path."""
        jobs = self.moment.jobs
        if jobs is None:
            jobs = self.moment.jobs = [decode_row(JobRow, value) for _, value in self.storage.scan(keys.JOB)]
        if not jobs:
            return []
        key = "\x01".join(path)
        return [
            job
            for job in jobs
            if not job.path
            or not key
            or f"{key}\x01".startswith(f"{job.path}\x01")
            or f"{job.path}\x01".startswith(f"{key}\x01")
        ]

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
        if self.moment.nothing_waits is None:
            self.moment.nothing_waits = next(iter(self.storage.scan(keys.WAITING)), None) is None
        # A file is put into the queue with its new document, so that this holds for the whole moment; one may
        # leave the queue without any change of a document.
        return 0 if self.moment.nothing_waits else count_waiting(self.storage, path)
