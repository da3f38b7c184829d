"""Flushes: the documents of the tail are taken into the files of all indexes.

The rows of the documents are all that is needed, so a flush that is lost is begun anew from them. It runs in
steps, over several transactions; only the last one makes it count.
"""

from __future__ import annotations

import contextlib
import errno
import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Protocol

from svc.errors import CorruptRecord
from svc.plugin import Version
from svc_query.api import MAXIMUM_TERM_BYTES, IndexDocument, LibraryIndexType, TermIndexType, Value
from svc_query.indexing import keys
from svc_query.indexing.applying import repair_index
from svc_query.indexing.reconciling import Extensions
from svc_query.indexing.rows import DocumentRow, FailureRow, IndexRow, decode_row, decode_texts
from svc_query.indexing.table import LONG, NONE, PATH_INDEX, PRESENCE_INDEX, Table
from svc_query.snapshot import VIRTUAL_FIELDS

__all__ = ["SOMETIMES_MISSING", "Host", "flush", "index_directory", "virtual_values"]

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


class Host(Protocol):
    """What the pieces of the view's work share.

    Attributes:
        table: the documents, in the transaction of this moment.
        extensions: index types and parsers in use.
        directory: of the view's files.
        at: the tree of the last commit that is in the table.
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


class _Sink(Protocol):
    """Where the values of one index go."""

    row: IndexRow

    def add(self, number: int, row: DocumentRow, values: Sequence[Value]) -> None: ...

    def step(self) -> None: ...

    def flush(self) -> bytes: ...

    def close(self) -> None: ...


class _TermSink:
    """Terms of an index type, for the driver's segments."""

    def __init__(self, flush: _Flush, number: int, row: IndexRow, index_type: TermIndexType) -> None:
        from svc_query.segments import TermIndexWriter

        self.row = row
        self._flush = flush
        self._terms = index_type.terms
        self._options = json.loads(row.options)
        self._writer = TermIndexWriter(flush.clean(number, row), row.manifest, ordered=index_type.ordered)
        self._add = self._writer.add
        self._known: dict[tuple[type, Value], frozenset[bytes]] = {}

    def add(self, number: int, row: DocumentRow, values: Sequence[Value]) -> None:
        try:
            terms = self._of(values[0])
            if len(values) > 1:
                terms = terms.union(*[self._of(value) for value in values[1:]])
        except Exception as error:  # noqa: BLE001 - foreign code: it costs this document's value
            self._flush.note(number, row, self.row, error)
            return
        self._add(number, terms)

    def _of(self, value: Value) -> frozenset[bytes]:
        key = value.__class__, value
        found = self._known.get(key)
        if found is None:
            found = frozenset(self._terms(value, self._options))
            if len(self._known) < _CACHED_TERMS and len(found) < 8:
                self._known[key] = found
        return found

    def step(self) -> None:
        pass

    def flush(self) -> bytes:
        return self._writer.flush()

    def close(self) -> None:
        pass


class _OwnSink:
    """The driver's own indexes: paths, and which fields there are."""

    def __init__(self, flush: _Flush, number: int, row: IndexRow) -> None:
        from svc_query.segments import TermIndexWriter

        self.row = row
        self._writer = TermIndexWriter(flush.clean(number, row), row.manifest, ordered=row.name == PATH_INDEX)
        self.add_terms = self._writer.add

    def add(self, number: int, row: DocumentRow, values: Sequence[Value]) -> None:
        """Takes no values: what it has are terms (``add_terms``)."""

    def step(self) -> None:
        pass

    def flush(self) -> bytes:
        return self._writer.flush()

    def close(self) -> None:
        pass


class _LibrarySink:
    """Values for a library."""

    def __init__(self, flush: _Flush, number: int, row: IndexRow, index_type: LibraryIndexType) -> None:
        self.row = row
        self._flush = flush
        self._waiting: list[tuple[IndexDocument, DocumentRow]] = []
        directory = index_directory(flush.directory, number)
        directory.mkdir(exist_ok=True)
        self._writer = index_type.open_writer(directory, json.loads(row.options), row.manifest)

    def add(self, number: int, row: DocumentRow, values: Sequence[Value]) -> None:
        path = tuple(row.path.split("\x01"))
        self._waiting.append((IndexDocument(number, path, values), row))

    def step(self) -> None:
        waiting, self._waiting = self._waiting, []
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
    """One flush."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._plans: dict[int, list[tuple[int | None, str, list[_Sink]]]] = {}
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
        """Opens the driver's own indexes."""
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
            present: set[bytes] = set()
            for place, name, sinks in self._plan(row.configuration):
                values = virtual_values(row, name) if place is None else self._values(number, row, place)
                if not values:
                    continue
                if place is not None or name in SOMETIMES_MISSING:
                    present.add(name.encode())
                for sink in sinks:
                    sink.add(number, row, values)
            self._paths.add_terms(number, {row.path.encode()[:MAXIMUM_TERM_BYTES]})
            self._presence.add_terms(number, present)
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
        return [tuple(value) if value.__class__ is list else value for value in found]

    def _plan(self, configuration: int) -> list[tuple[int | None, str, list[_Sink]]]:
        """What to do with a document: (position of the values or None, field, where they go)."""
        plan = self._plans.get(configuration)
        if plan is None:
            plan = self._plans[configuration] = []
            place = -1
            for field in self._host.table.configuration(configuration).fields:
                if field.source:
                    place += 1
                sinks = [self._sink((field.name, *one)) for one in field.types]
                plan.append(
                    (
                        place if field.source else None,
                        field.name,
                        [sink for sink in sinks if sink is not None],
                    )
                )
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

        Raises:
            OSError: the machine fails; or it is the driver's own index.
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

    def write(self) -> Generator[None, None, Mapping[int, bytes]]:
        """Writes the files, an index at each step; returns the new manifests."""
        manifests: dict[int, bytes] = {}
        for number, sink in self._sinks.items():
            if number not in self.broken:
                self._guard(number, lambda sink=sink, number=number: manifests.update({number: sink.flush()}))  # type: ignore[misc]
                yield
        return manifests

    def close(self) -> None:
        """Lets go of the writers."""
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
