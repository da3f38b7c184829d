"""Flushes: the documents of the tail are taken into the files of all indexes.

The rows of the documents are all that is needed, so a flush that is lost is begun anew from them. It runs in
steps, over several transactions; only the last one makes it count.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, NamedTuple, Protocol, TypeAlias

from pyroaring import BitMap

from svc.errors import CorruptRecord
from svc.plugin import Version
from svc_query.api import MAXIMUM_TERM_BYTES, IndexDocument, LibraryIndexType, TermIndexType, Value
from svc_query.indexing import keys
from svc_query.indexing.applying import repair_index
from svc_query.indexing.reconciling import Extensions
from svc_query.indexing.rows import DocumentRow, FailureRow, IndexRow, decode_row, decode_texts
from svc_query.indexing.table import LONG, NONE, PATH_INDEX, PRESENCE_INDEX, Table
from svc_query.snapshot import VIRTUAL_FIELDS

__all__ = ["SOMETIMES_MISSING", "Host", "flush", "index_directory", "tell_untaken", "virtual_values"]

logger = logging.getLogger("svc.plugin.query")
_DOCUMENTS_PER_STEP = 128
_CACHED_TERMS = 512
SOMETIMES_MISSING = ("@content_type", "@extension")
"""Virtual fields that not every file has."""

_OF_THE_MACHINE = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EIO,
        errno.EROFS,
    )
)
"""What goes wrong for all indexes alike, and is tried again, with a finding meanwhile."""


def tell_untaken(field: str, index_type: str, path: str, error: Exception) -> None:
    """Writes into the log that an index type did not take a document: the first of many, each time."""
    logger.warning(
        "The index type %s did not take the field %s of %s: %s: %s. Queries test such files one by one.",
        *(index_type, field, "/" + path.replace("\x01", "/"), type(error).__name__, error),
    )


class Host(Protocol):
    """What the pieces of the view's work share.

    ``table`` are the documents, in the transaction of this moment; ``at`` is the tree of the last commit in
    it.
    """

    table: Table
    extensions: Extensions
    directory: FilePath
    at: Version


def index_directory(directory: FilePath, number: int) -> FilePath:
    """Returns where the files of an index are."""
    return directory / f"index-{number}"


def virtual_values(row: DocumentRow, field: str) -> tuple[Value, ...]:
    """Returns the values of a virtual field."""
    return _VIRTUAL[field](row)


def _extension(row: DocumentRow) -> tuple[Value, ...]:
    name = row.path.rpartition("\x01")[2]
    stem, dot, ending = name.rpartition(".")
    return (ending.lower(),) if dot and ending and stem.strip(".") else ()


_VIRTUAL: dict[str, Callable[[DocumentRow], tuple[Value, ...]]] = {
    "@path": lambda row: ("/" + row.path.replace("\x01", "/"),),
    "@filename": lambda row: (row.path.rpartition("\x01")[2],),
    "@extension": _extension,
    "@content_type": lambda row: () if row.content_type is None else (row.content_type,),
    "@hash": lambda row: (row.hash.hex(),),
    "@size": lambda row: (row.size,),
    "@created_at": lambda row: (row.created_ms,),
    "@updated_at": lambda row: (row.updated_ms,),
}
assert set(_VIRTUAL) == set(VIRTUAL_FIELDS), "all virtual fields have values"


_Waiting: TypeAlias = tuple[int, DocumentRow, Sequence[Value]]
"""What an index is told of a document: its number, its row, the values."""


class _FieldPlan(NamedTuple):
    """What to do with a field of a document.

    Attributes:
        place: of its values in the row, unless it is virtual.
        term: what the index of presence has for it; None for what every file has.
        values_of: gives the values of a virtual field.
        waits: the indexes that it goes to, each by what makes them wait there.
    """

    place: int
    term: bytes | None
    values_of: Callable[[DocumentRow], tuple[Value, ...]] | None
    waits: Sequence[Callable[[_Waiting], None]]


class _Sink(ABC):
    """Where the values of one index go; they wait in ``waiting`` for the next step."""

    row: IndexRow

    def __init__(self) -> None:
        self.waiting: list[_Waiting] = []

    def taken(self) -> list[_Waiting]:
        """Returns what waits, which does so no longer."""
        found = self.waiting.copy()
        self.waiting.clear()
        return found

    @abstractmethod
    def step(self) -> None:
        """Takes in what waits."""

    @abstractmethod
    def flush(self) -> bytes:
        """Writes the files, and returns the new manifest."""

    def close(self) -> None:
        return


class _TermSink(_Sink):
    def __init__(self, flush: _Flush, number: int, row: IndexRow, index_type: TermIndexType) -> None:
        from svc_query.segments import TermIndexWriter

        super().__init__()
        self.row = row
        self._flush = flush
        self._terms = index_type.terms
        self._options = json.loads(row.options)
        self._writer = TermIndexWriter(flush.clean(number, row), row.manifest, ordered=index_type.ordered)
        self._known: dict[tuple[type, Value], Collection[bytes]] = {}

    def step(self) -> None:
        waiting = self.taken()
        known = self._known
        found: list[tuple[int, Collection[bytes]]] = []
        for number, row, values in waiting:
            try:
                value = values[0]
                terms = known.get((value.__class__, value))
                if terms is None:
                    terms = self._of(value)
                if len(values) > 1:
                    terms = frozenset(terms).union(*[self._of(value) for value in values[1:]])
            except Exception as error:  # noqa: BLE001 - foreign code: it costs this document's value
                self._flush.note(number, row, self.row, error)
                continue
            found.append((number, terms))
        self._writer.add_all(found)

    def _of(self, value: Value) -> Collection[bytes]:
        found = self._terms(value, self._options)
        if not isinstance(found, (tuple, set, frozenset)) or (found.__class__ is tuple and len(found) > 1):
            found = frozenset(found)
        if len(self._known) < _CACHED_TERMS and len(found) < 8:
            self._known[value.__class__, value] = found
        return found

    def flush(self) -> bytes:
        return self._writer.flush()


class _OwnSink(_Sink):
    """The driver's own indexes: paths, and which fields there are."""

    def __init__(self, flush: _Flush, number: int, row: IndexRow) -> None:
        from svc_query.segments import TermIndexWriter

        super().__init__()
        self.row = row
        self._writer = TermIndexWriter(flush.clean(number, row), row.manifest, ordered=row.name == PATH_INDEX)
        self.terms: list[tuple[int, Collection[bytes]]] = []
        """Of documents, since what it has are no values."""

    def step(self) -> None:
        found, self.terms = self.terms, []
        self._writer.add_all(found)

    def flush(self) -> bytes:
        return self._writer.flush()


class _LibrarySink(_Sink):
    def __init__(self, flush: _Flush, number: int, row: IndexRow, index_type: LibraryIndexType) -> None:
        super().__init__()
        self.row = row
        self._flush = flush
        directory = index_directory(flush.directory, number)
        directory.mkdir(exist_ok=True)
        self._writer = index_type.open_writer(directory, json.loads(row.options), row.manifest)

    def step(self) -> None:
        found = self.taken()
        waiting = [
            (IndexDocument(number, tuple(row.path.split("\x01")), values), row)
            for number, row, values in found
        ]
        if not waiting:
            return
        try:
            self._writer.add([document for document, _ in waiting])
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - foreign code: find the document that it does not take
            for document, row in waiting:
                try:
                    self._writer.add([document])
                except OSError:
                    raise
                except Exception as error:  # noqa: BLE001
                    self._flush.note(document.id, row, self.row, error)

    def flush(self) -> bytes:
        return self._writer.flush(self._flush.dead)

    def close(self) -> None:
        self._writer.close()


class _DamagedFiles(Exception):
    """The files of an index are not what its manifest says; ``args`` has its number."""


class _Flush:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._plans: dict[int, list[_FieldPlan]] = {}
        self._sinks: dict[int, _Sink] = {}
        self.directory = host.directory
        self.broken: dict[int, str] = {}
        self._notes: list[tuple[int, DocumentRow, IndexRow, Exception]] = []
        rows = {row.name: (number, row) for number, row in host.table.indexes().values()}
        path_number, path_row = rows[PATH_INDEX]
        presence_number, presence_row = rows[PRESENCE_INDEX]
        self._own = (path_number, path_row), (presence_number, presence_row)
        self.dead = host.table.dead()

    def open_own(self) -> None:
        for number, row in self._own:
            self._guard(number, lambda number=number, row=row: self._open_own(number, row))  # type: ignore[misc]

    def _open_own(self, number: int, row: IndexRow) -> None:
        sink = self._sinks[number] = _OwnSink(self, number, row)
        if row.name == PATH_INDEX:
            self._paths = sink
        else:
            self._presence = sink

    def clean(self, number: int, row: IndexRow) -> FilePath:
        """Removes files of an index that count no more, and returns its directory."""
        from svc_query.segments import unused_files

        directory = index_directory(self.directory, number)
        directory.mkdir(exist_ok=True)
        for path in unused_files(directory, row.manifest):
            path.unlink(missing_ok=True)
        return directory

    def add(self, first: int, end: int) -> None:
        """Takes in the documents that live with numbers in a range."""
        table = self._host.table
        for number in range(first, end):
            row = table.row(number)
            if row is None:
                continue
            present: list[bytes] = []
            for place, term, values_of, waits in self._plan(row.configuration):
                values = self._values(number, row, place) if values_of is None else values_of(row)
                if values:
                    if term is not None:
                        present.append(term)
                    for wait in waits:
                        wait((number, row, values))
            self._paths.terms.append((number, (row.path.encode()[:MAXIMUM_TERM_BYTES],)))
            self._presence.terms.append((number, frozenset(present)))
        for sink_number, sink in self._sinks.items():
            self._guard(sink_number, sink.step)
        self._write_notes()

    def _values(self, number: int, row: DocumentRow, place: int) -> Sequence[Value]:
        if place >= len(row.values):
            return ()
        found = row.values[place]
        if found == NONE:
            return ()
        if found == LONG:
            stored = self._host.table.storage.get(keys.text_key(number, place))
            found = [] if stored is None else decode_texts(stored)
        if len(found) == 1 and found[0].__class__ is not list:
            return found  # type: ignore[no-any-return]
        return [tuple(value) if value.__class__ is list else value for value in found]

    def _plan(self, configuration: int) -> Sequence[_FieldPlan]:
        """What to do with a document, for each field."""
        plan = self._plans.get(configuration)
        if plan is None:
            plan = self._plans[configuration] = []
            place = -1
            for field in self._host.table.configuration(configuration).fields:
                place += bool(field.source)
                sinks = [self._sink((field.name, *one)) for one in field.types]
                term = field.name.encode() if field.source or field.name in SOMETIMES_MISSING else None
                waits = [sink.waiting.append for sink in sinks if sink is not None]
                plan.append(_FieldPlan(place, term, None if field.source else _VIRTUAL[field.name], waits))
        return plan

    def _sink(self, name: tuple[str, str, str, int]) -> _Sink | None:
        number, row = self._host.table.indexes()[name]
        index_type = self._host.extensions.types.get(row.type)
        if index_type is None or index_type.format != row.format or row.problem:
            return None
        sink = self._sinks.get(number)
        if sink is None and number not in self.broken:
            self._guard(number, lambda: self._open(number, row, index_type))
            sink = self._sinks.get(number)
        return sink

    def _open(self, number: int, row: IndexRow, index_type: Any) -> None:
        kind = _LibrarySink if isinstance(index_type, LibraryIndexType) else _TermSink
        self._sinks[number] = kind(self, number, row, index_type)

    def _guard(self, number: int, function: Callable[[], object]) -> None:
        """Calls foreign code: an index that fails is out of use, and nothing else is.

        Raises OSError where the machine fails, or in the driver's own index.
        """
        is_own = isinstance(self._sinks.get(number), _OwnSink)
        try:
            function()
        except (CorruptRecord, FileNotFoundError) as error:
            raise _DamagedFiles(number) from error
        except OSError as error:
            if is_own or error.errno in _OF_THE_MACHINE:
                raise
            self.broken[number] = f"{type(error).__name__}: {error}"[:300]
        except Exception as error:
            if is_own:
                raise
            self.broken[number] = f"{type(error).__name__}: {error}"[:300]

    def note(self, number: int, row: DocumentRow, index: IndexRow, error: Exception) -> None:
        """Notes that an index does not take a document's value."""
        self._notes.append((number, row, index, error))

    def _write_notes(self) -> None:
        table = self._host.table
        if self._notes:
            self._keep_untaken()
        for number, row, index, error in self._notes:
            key = row.path.encode()
            stored = table.storage.get(keys.FAILURE + key)
            failure = FailureRow(number, 0) if stored is None else decode_row(FailureRow, stored)
            if failure.number != number:
                failure = FailureRow(number, 0)
            failure.at_ms = time.time_ns() // 1_000_000
            name = f"{index.field}: {index.type}"
            failure.indexes[name] = f"{type(error).__name__}: {error}"[:300]
            table.set_failure(key, failure)
            table.change()
        self._notes = []

    def _keep_untaken(self) -> None:
        table = self._host.table
        indexes, known = table.indexes(), dict(table.untaken())
        found: dict[int, list[int]] = {}
        for number, row, index, error in self._notes:
            place = indexes[index.name][0]
            if place not in found:
                tell_untaken(index.field, index.type, row.path, error)
            found.setdefault(place, []).append(number)
        for place, numbers in found.items():
            table.set_untaken(place, known.get(place, BitMap()) | BitMap(numbers))

    def write(self) -> Generator[None, None, Mapping[int, bytes]]:
        manifests: dict[int, bytes] = {}
        for number, sink in self._sinks.items():
            if number not in self.broken:
                self._guard(number, lambda sink=sink, number=number: manifests.update({number: sink.flush()}))  # type: ignore[misc]
                yield
        return manifests

    def close(self) -> None:
        for sink in self._sinks.values():
            with contextlib.suppress(Exception):
                sink.close()


def flush(host: Host) -> Generator[None, None, None]:
    """Takes the documents of the tail into the indexes, in steps of a few milliseconds."""
    state = host.table.state
    epoch, flushes, at, upper = state.epoch, state.flushes, state.flushed, state.next_number
    work = _Flush(host)
    try:
        work.open_own()
        while at < upper:
            end = min(at + _DOCUMENTS_PER_STEP, upper)
            work.add(at, end)
            at = end
            yield
            if (host.table.state.epoch, host.table.state.flushes) != (epoch, flushes):
                return
        manifests = yield from work.write()
        state = host.table.change()
        if (state.epoch, state.flushes) != (epoch, flushes):
            return
        for number, row in list(host.table.indexes().values()):
            if number in work.broken:
                row.manifest, row.problem = None, work.broken[number]
                host.table.set_index(number, row)
            elif number in manifests and manifests[number] != row.manifest:
                row.manifest = manifests[number]
                host.table.set_index(number, row)
        state.flushed = upper
        state.flushes += 1
        state.tail_bytes = 0
    except _DamagedFiles as error:
        for number, row in list(host.table.indexes().values()):
            if number == error.args[0]:
                repair_index(host.table, number, row, host.at)
    finally:
        work.close()
