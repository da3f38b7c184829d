"""The document table: which documents there are, by path and by number, and what was found in them.

One object lives as long as its view; what it remembers of the rows is forgotten at the end of every
transaction, since any process may write in between, and a transaction may be lost.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from pyroaring import BitMap

from svc.plugin import Path, Version, ViewStorage
from svc_query.configuration import QueryConfiguration
from svc_query.indexing import keys
from svc_query.indexing.effective import Effective
from svc_query.indexing.rows import (
    ConfigurationRow,
    DirectoryRow,
    DocumentRow,
    FailureRow,
    IndexRow,
    JobRow,
    State,
    decode_document,
    decode_row,
    encode,
    encode_texts,
)

__all__ = [
    "LONG",
    "NONE",
    "NUMBER_LIMIT",
    "PATH_INDEX",
    "PRESENCE_INDEX",
    "Table",
    "read_state",
]

NONE = 0
"""Stands in a row for a field without values."""

LONG = 1
"""Stands in a row for values that have a row of their own."""

NUMBER_LIMIT = (1 << 32) - (1 << 24)
"""The numbering begins anew when numbers come to this; meanwhile the rest is enough for what is written."""

PATH_INDEX = ("@path", "", "", 1)
"""Name of the driver's own index over paths; terms as ``keys.key_of_path`` makes them."""

PRESENCE_INDEX = ("@fields", "", "", 1)
"""Name of the driver's own index of the fields that documents have; terms are their names."""

_LONG_CHARACTERS = 512
_NUMBER = struct.Struct(">I")
_COUNT = struct.Struct("<Q")


def read_state(storage: ViewStorage) -> State:
    """Returns where the table stands that is stored; an empty one where none is."""
    value = storage.get(keys.STATE)
    return State(b"") if value is None else decode_row(State, value)


_KEPT_PART = 10
"""So much of the room for documents, one part of it, is kept for small directories."""

_MOST_SHARES = 1_000
"""Into so many equal shares the room is cut at most, however many entries the root has."""


class Table:
    """The rows of the documents, within transactions.

    ``maximum_indexes`` is how many there may be, what is beyond rests; ``maximum_documents`` how many jobs
    may make.
    """

    def __init__(self, tell: Callable[[IndexRow], None] = lambda row: None) -> None:
        self.tell_of_damage = tell
        self.maximum_indexes = QueryConfiguration().maximum_indexes
        self.maximum_documents = QueryConfiguration().maximum_documents
        self.storage: ViewStorage = None  # type: ignore[assignment]
        self._forget()

    def _forget(self) -> None:
        self._state: State | None = None
        self._dead: dict[int, BitMap] = {}
        self._uses: dict[int, int] = {}
        self._numbers: dict[bytes, int] = {}
        self._configurations: dict[int, ConfigurationRow] = {}
        self._indexes: dict[tuple[str, str, str, int], tuple[int, IndexRow]] | None = None
        self._is_changed = False

    def begin(self, storage: ViewStorage) -> None:
        """Begins to work in a transaction."""
        self._forget()
        self.storage = storage

    def end(self) -> None:
        """Writes what is still in memory; the transaction ends."""
        state = self._state
        if state is not None and self._is_changed:
            for high, bitmap in self._dead.items():
                bitmap.run_optimize()
                self.storage.put(_dead_key(high), bitmap.serialize())
            for number in self._uses:
                count = self.uses(number)
                self.storage.put(keys.number_key(keys.CONFIGURATION_USE, number), _COUNT.pack(count))
            state.change += 1
            self.storage.put(keys.STATE, encode(state))
        self._forget()

    # -- the state -----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Where the table stands; a change of it is written if ``change`` is called."""
        state = self._state
        if state is None:
            value = self.storage.get(keys.STATE)
            if value is None:
                state = self._state = State(uuid.uuid4().bytes)
                self._own_indexes()
            else:
                state = self._state = decode_row(State, value)
        return state

    def change(self) -> State:
        """Returns the state, to be changed."""
        state = self.state
        self._is_changed = True
        return state

    def begin_anew(self) -> None:
        """Begins a new numbering; no row of a document or an index may be left."""
        old = self.state
        self._forget()
        state = self._state = State(uuid.uuid4().bytes)
        state.change, state.next_job, state.directories = old.change, old.next_job, old.directories
        state.types, state.parsers, state.manifests = old.types, old.parsers, old.manifests
        state.sequence, state.providers = old.sequence, old.providers
        self._own_indexes()

    def _own_indexes(self) -> None:
        for name in (PATH_INDEX, PRESENCE_INDEX):
            self.set_index(self.index_number(name), IndexRow(*name))

    # -- documents -----------------------------------------------------------------------------

    def number_of(self, key: bytes) -> int:
        """Returns the number of the document at a path, given as key; 0 when none is."""
        value = self.storage.get(keys.PATH + key)
        return 0 if value is None else int(_NUMBER.unpack(value)[0])

    def row(self, number: int) -> DocumentRow | None:
        """Returns a document's row."""
        value = self.storage.get(keys.number_key(keys.DOCUMENT, number))
        return None if value is None else decode_document(value)

    def put(
        self,
        key: bytes,
        old: tuple[int, DocumentRow] | None,
        row: DocumentRow,
        values: Sequence[list[Any]] | None,
        effective: Effective,
    ) -> int:
        """Writes a document under a new number, which is returned.

        ``key`` is of its path, ``old`` what is there by now. The values and configuration of ``row`` are
        filled in here. ``values`` are for each content field of the configuration; None when they are not
        known yet.
        """
        state = self.change()
        number = state.next_number
        state.next_number = number + 1
        if old is not None:
            self._kill(*old)
        row.configuration = self.configuration_number(effective)
        if values is not None:
            row.values = [self._value(number, place, effective, found) for place, found in enumerate(values)]
        self._uses[row.configuration] = self._uses.get(row.configuration, 0) + 1
        content = encode(row)
        state.documents += 1
        state.tail_bytes += len(content)
        storage = self.storage
        storage.put(keys.number_key(keys.DOCUMENT, number), content)
        storage.put(keys.PATH + key, _NUMBER.pack(number))
        return number

    def remove(self, key: bytes, number: int) -> None:
        """Removes the document at a path."""
        row = self.row(number)
        if row is not None:
            self._kill(number, row)
        for kind in (keys.PATH, keys.WAITING, keys.FAILURE, keys.GUESS):
            self.storage.delete(kind + key)

    def _value(self, number: int, place: int, effective: Effective, found: list[Any]) -> Any:
        if not found:
            return NONE
        size = 0
        for value in found:
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, tuple):
                size += 8 * len(value)
        if size <= _LONG_CHARACTERS:
            return found
        texts = encode_texts(found, effective.contents[place].compression)
        self.storage.put(keys.text_key(number, place), texts)
        self.change().tail_bytes += len(texts) * 3
        return LONG

    def _kill(self, number: int, row: DocumentRow) -> None:
        state = self.change()
        self.storage.delete(keys.number_key(keys.DOCUMENT, number))
        for place, values in enumerate(row.values):
            if values == LONG:
                self.storage.delete(keys.text_key(number, place))
        high = number >> 16
        bitmap = self._dead.get(high)
        if bitmap is None:
            value = self.storage.get(_dead_key(high))
            bitmap = self._dead[high] = BitMap() if value is None else BitMap.deserialize(value)
        bitmap.add(number)
        state.dead += 1
        state.documents -= 1
        self._uses[row.configuration] = self._uses.get(row.configuration, 0) - 1

    # -- files that wait, and failures ---------------------------------------------------------

    def wait(self, key: bytes, number: int, owner: bytes = b"") -> None:
        """Puts a document's file into the queue of those to be read; ``owner`` is empty where not known."""
        self.stop_waiting(key)
        self.storage.put(keys.WAITING + key, _NUMBER.pack(number) + owner)
        if owner:
            self.storage.put(keys.OWNED + owner + key, b"")

    def waiting_number(self, key: bytes) -> int:
        """Returns the number of the document at a path if its file waits, else 0."""
        value = self.storage.get(keys.WAITING + key)
        return 0 if value is None else _NUMBER.unpack_from(value)[0]

    def waiting_owner(self, key: bytes) -> bytes:
        """Returns who wrote the file at a path that waits; empty where that is not known."""
        value = self.storage.get(keys.WAITING + key)
        return b"" if value is None else value[_NUMBER.size :]

    def has_waiting(self) -> bool:
        """Whether any file waits."""
        return next(iter(self.storage.scan(keys.WAITING)), None) is not None

    def stop_waiting(self, key: bytes) -> None:
        """Takes a file out of the queue, if it is there."""
        value = self.storage.get(keys.WAITING + key)
        if value is None:
            return
        self.storage.delete(keys.WAITING + key)
        owner = value[_NUMBER.size :]
        if owner:
            self.storage.delete(keys.OWNED + owner + key)

    def set_failure(self, key: bytes, failure: FailureRow | None) -> None:
        """Notes what went wrong with a file, or that nothing did."""
        if failure is None:
            self.storage.delete(keys.FAILURE + key)
        else:
            self.storage.put(keys.FAILURE + key, encode(failure))

    # -- configurations ------------------------------------------------------------------------

    def configuration_number(self, effective: Effective) -> int:
        """Returns the number of a configuration; makes it, and its indexes, when it is new."""
        number = self._numbers.get(effective.hash)
        if number is None:
            value = self.storage.get(keys.CONFIGURATION_HASH + effective.hash)
            number = self._numbers[effective.hash] = (
                self._make_configuration(effective) if value is None else _NUMBER.unpack(value)[0]
            )
        return number

    def _make_configuration(self, effective: Effective) -> int:
        state = self.change()
        number = state.next_configuration
        state.next_configuration = number + 1
        packed = _NUMBER.pack(number)
        self.storage.put(keys.CONFIGURATION_HASH + effective.hash, packed)
        self.storage.put(keys.CONFIGURATION + packed, encode(effective.row))
        for field in effective.row.fields:
            for type_name, options, format in field.types:
                name = (field.name, type_name, options, format)
                if name not in self.indexes():
                    problem = ""
                    if len(self.indexes()) >= self.maximum_indexes:
                        problem = f"The database has {self.maximum_indexes} indexes already, and no more."
                    row = IndexRow(*name, None, field.value_type, problem=problem)
                    self.set_index(self.index_number(name), row)
        return number

    def configuration(self, number: int) -> ConfigurationRow:
        """Returns a configuration that some document has."""
        row = self._configurations.get(number)
        if row is None:
            value = self.storage.get(keys.number_key(keys.CONFIGURATION, number))
            assert value is not None, f"configuration {number} is gone"
            row = self._configurations[number] = decode_row(ConfigurationRow, value)
        return row

    def configurations(self) -> Iterator[tuple[int, ConfigurationRow]]:
        """Yields all configurations by number."""
        for key, value in self.storage.scan(keys.CONFIGURATION):
            yield _NUMBER.unpack(key[1:])[0], decode_row(ConfigurationRow, value)

    def uses(self, number: int) -> int:
        """Returns how many documents have a configuration."""
        value = self.storage.get(keys.number_key(keys.CONFIGURATION_USE, number))
        stored = 0 if value is None else int(_COUNT.unpack(value)[0])
        return max(0, stored + self._uses.get(number, 0))

    def remove_configuration(self, number: int, hash: bytes) -> None:
        """Forgets a configuration that no document has."""
        self.storage.delete(keys.number_key(keys.CONFIGURATION, number))
        self.storage.delete(keys.number_key(keys.CONFIGURATION_USE, number))
        self.storage.delete(keys.CONFIGURATION_HASH + hash)
        self._numbers.pop(hash, None)
        self._uses.pop(number, None)
        self._configurations.pop(number, None)
        self.change()

    def set_directory(self, directory: Path, row: DirectoryRow | None) -> bool:
        """Notes the ``indexes.json`` of a directory; returns whether it is another than before."""
        key = keys.DIRECTORY + keys.key_of_path(directory)
        value = None if row is None else encode(row)
        if self.storage.get(key) == value:
            return False
        if value is None:
            self.storage.delete(key)
        else:
            self.storage.put(key, value)
        self.change().directories += 1
        return True

    def note_configured(self, directory: Path, sequence: int) -> None:
        """Notes that the configuration of a directory has changed, for whoever reindexes then."""
        self.storage.put(keys.CONFIGURED + keys.key_of_path(directory), sequence.to_bytes(8, "big"))

    # -- indexes -------------------------------------------------------------------------------

    def indexes(self) -> Mapping[tuple[str, str, str, int], tuple[int, IndexRow]]:
        """Returns the number and the row of every index, by its name."""
        if self._indexes is None:
            self._indexes = {}
            for key, value in self.storage.scan(keys.INDEX):
                row = decode_row(IndexRow, value)
                self._indexes[row.name] = _NUMBER.unpack(key[1:])[0], row
        return self._indexes

    def index_number(self, name: tuple[str, str, str, int]) -> int:
        """Returns the number of an index, a new one if there is none of this name."""
        found = self.indexes().get(name)
        if found is not None:
            return found[0]
        state = self.change()
        state.next_index += 1
        return state.next_index - 1

    def set_index(self, number: int, row: IndexRow) -> None:
        """Writes the row of an index."""
        self.storage.put(keys.number_key(keys.INDEX, number), encode(row))
        self.change().manifests += 1
        if self._indexes is not None:
            self._indexes[row.name] = number, row

    def untaken(self) -> Iterator[tuple[int, BitMap]]:
        """Yields the indexes that did not take the values of some documents, with these documents."""
        for key, value in self.storage.scan(keys.UNTAKEN):
            yield int.from_bytes(key[1:], "big"), BitMap.deserialize(value)

    def set_untaken(self, number: int, documents: BitMap) -> None:
        """Says of which documents an index did not take the values: queries test them one by one."""
        key = keys.number_key(keys.UNTAKEN, number)
        if documents:
            self.storage.put(key, documents.serialize())
        else:
            self.storage.delete(key)
        self.change().manifests += 1

    def remove_index(self, number: int) -> None:
        """Removes the row of an index."""
        self.storage.delete(keys.number_key(keys.UNTAKEN, number))
        self.storage.delete(keys.number_key(keys.INDEX, number))
        self.change().manifests += 1
        self._indexes = None

    # -- jobs ----------------------------------------------------------------------------------

    def jobs(self) -> list[tuple[int, JobRow]]:
        """Returns all jobs, the oldest first."""
        return [
            (_NUMBER.unpack(key[1:])[0], decode_row(JobRow, value))
            for key, value in self.storage.scan(keys.JOB)
        ]

    def jobs_to_do(self, version: Version) -> list[tuple[int, JobRow]]:
        """Returns the jobs that can get on, the oldest first."""
        return [
            found for found in self.jobs() if not found[1].is_held or self.has_room(found[1].top, version)
        ]

    def has_room(self, top: str, version: Version) -> bool:
        """Whether jobs may make documents below a top-level directory; "" stands for files beside them.

        The last tenth of the room is kept for directories that have no more files than an equal share, with
        files directly in the root as one of them.
        """
        left = self.maximum_documents - self.state.documents
        if left <= 0 or left > self.maximum_documents // _KEPT_PART:
            return left > 0
        entries = version.entry_count(())
        if top:
            entry = version.get((top,))
            files = 0 if entry is None or entry.totals is None else entry.totals.files
        else:
            files = entries
        return files * min(entries, _MOST_SHARES) <= self.maximum_documents

    def split_job(self, job: JobRow, top: str, version: Version, *, is_held: bool) -> None:
        """Adds a job for a part of another one, over a top-level directory, which goes on from behind it."""
        for number, other in self.jobs():
            if other.path == top and other.until <= job.until and (job.reads or not other.reads):
                self.storage.delete(keys.number_key(keys.JOB, number))
        entry = version.get((top,))
        files = 0 if entry is None or entry.totals is None else entry.totals.files
        part = replace(job, path=top, total=files, position=None, done=0, is_held=is_held, skipped=False)
        job.total = max(job.done, job.total - files)
        state = self.change()
        self.set_job(state.next_job, part)
        state.next_job += 1

    def add_job(self, row: JobRow) -> None:
        """Adds a job, unless another will do its work; takes the place of those that it makes needless."""
        below = f"{row.path}\x01" if row.path else ""
        jobs = self.jobs()
        if any(_will_do(other, row) for _, other in jobs):
            return
        for number, other in jobs:
            if other.until <= row.until and (other.path == row.path or other.path.startswith(below)):
                row.since_ms = min(row.since_ms, other.since_ms)
                self.storage.delete(keys.number_key(keys.JOB, number))
        state = self.change()
        self.set_job(state.next_job, row)
        state.next_job += 1

    def set_job(self, number: int, row: JobRow | None) -> None:
        """Writes how far a job has come; None: it is done."""
        key = keys.number_key(keys.JOB, number)
        if row is None:
            self.storage.delete(key)
        else:
            self.storage.put(key, encode(row))
        self.change()

    # -- reading -------------------------------------------------------------------------------

    def dead(self) -> BitMap:
        """Returns the numbers of all dead documents; a new bitmap."""
        found = [BitMap.deserialize(value) for _, value in self.storage.scan(keys.DEAD)]
        found.extend(self._dead.values())
        return BitMap.union(*found) if found else BitMap()


def _will_do(other: JobRow, row: JobRow) -> bool:
    """Whether a job has all of another's work still before it, and does not wait for room."""
    return (
        not other.is_held
        and other.until >= row.until
        and (other.reads or not row.reads)
        and (not other.path or f"{row.path}\x01".startswith(f"{other.path}\x01"))
        and (other.position is None or other.position < row.path)
    )


def _dead_key(high: int) -> bytes:
    return keys.DEAD + high.to_bytes(2, "big")
