"""Writes an index: a working copy that the library changes, and a directory of hard links for each state.

    work-.../       where the library writes; it belongs to one writer
    states/<n>/     the files of a flush, as they were then, with the library's own list of them, and the
                    numbers of the documents

The files of the library never change, so a state costs links and no copies. A reader opens a state and
sees that and nothing later; a writer that begins at a state that counts sees nothing of a flush that does
not. A working copy that is at that very state is used again, else it is made anew of links.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import tantivy
from pyroaring import BitMap
from svc_query.api import IndexDocument, LibraryWriter

from svc.errors import CorruptRecord
from svc_index_fulltext.analysis import VALUE_GAP, analysis_of
from svc_index_fulltext.idle_writers import IdleWriter, keep, take
from svc_index_fulltext.layout import (
    DIRECTORY_FIELD,
    ID_FIELD,
    META_FILE,
    TEXT_FIELD,
    directory_key,
    make_index,
    open_index,
    segment_files,
)

__all__ = ["HEAP_BYTES", "FulltextWriter", "State", "read_documents", "state_directory"]

HEAP_BYTES = 32 * 1024 * 1024
"""What the library may hold in memory before it writes a segment by itself."""

_STATES = "states"
_WORK = "work-"
_DOCUMENTS = "documents"
_MANAGED = ".managed.json"
_ATTEMPTS = 20
_LEAST_DEAD = 1_024
_DEAD_PART = 0.05
_STATE = struct.Struct(">4sQQ")
_MAGIC = b"ft01"


class State(NamedTuple):
    """What a flush returns.

    Attributes:
        number: of the state; it increases.
        above: all documents have lower numbers.
    """

    number: int
    above: int

    def encode(self) -> bytes:
        """Returns the state as bytes."""
        return _STATE.pack(_MAGIC, self.number, self.above)

    @classmethod
    def decode(cls, data: bytes) -> State:
        """Returns the state that bytes are of."""
        try:
            magic, number, above = _STATE.unpack(data)
        except struct.error as error:
            raise CorruptRecord("The state of a full-text index is not one.") from error
        if magic != _MAGIC:
            raise CorruptRecord("The state of a full-text index is not one.")
        return cls(number, above)


def state_directory(directory: FilePath, state: State) -> FilePath:
    """Returns where the files of a state are."""
    return directory / _STATES / f"{state.number:016x}"


def read_documents(files: FilePath) -> BitMap:
    """Returns the numbers of the documents of a state."""
    try:
        return BitMap.deserialize((files / _DOCUMENTS).read_bytes())
    except ValueError as error:
        raise CorruptRecord("The documents of a full-text index can't be read.") from error


@contextlib.contextmanager
def _gone_is_corrupt() -> Iterator[None]:
    """The state that a writer begins at must be there: that of a reader may have gone."""
    try:
        yield
    except FileNotFoundError as error:
        message = "The last state of a full-text index is gone: it must be made anew."
        raise CorruptRecord(message) from error


class FulltextWriter(LibraryWriter):
    """Writes one index.

    Raises:
        CorruptRecord: that state is gone, or can't be read.
    """

    def __init__(self, directory: FilePath, options: Mapping[str, Any], state: bytes | None) -> None:
        self._directory = directory
        self._analysis = analysis_of(options)
        self._base = None if state is None else State.decode(state)
        self._last = self._base
        self._number = self._newest_number()
        self._documents = BitMap()
        if self._base is not None:
            with _gone_is_corrupt():
                self._documents = read_documents(state_directory(directory, self._base))
        idle = take(directory, state)
        if idle is None:
            self._work, index = self._begin_work()
            self._writer = index.writer(HEAP_BYTES, 1)
        else:
            self._work, self._writer = idle.work, idle.writer
        self._remove_others()
        self._changed = False

    def add(self, documents: Iterable[IndexDocument]) -> None:
        """Adds documents. One that is there already is deleted first."""
        writer = self._writer
        for document in documents:
            if document.id in self._documents:
                writer.delete_documents_by_term(ID_FIELD, document.id)
            self._documents.add(document.id)
            writer.add_document(self._made(document))
            self._changed = True

    def flush(self, dead: BitMap) -> bytes:
        """Makes a state of what was added."""
        forgot = self._forget(dead)
        if self._last is not None and not self._changed and not forgot:
            return self._last.encode()
        self._writer.commit()
        above = self._documents.max() + 1 if self._documents else 0
        state = State(self._number + 1, above)
        self._make_state(state)
        kept = {self._base, self._last, state}
        self._number, self._last, self._changed = state.number, state, False
        self._remove_states({one.number for one in kept if one is not None})
        return state.encode()

    def close(self) -> None:
        """Lets the index go; what was added since the last flush is lost."""
        if self._changed or self._last is None:
            # The library would keep what was added for the next commit, whoever makes it.
            del self._writer
            shutil.rmtree(self._work, ignore_errors=True)
            return
        keep(self._directory, IdleWriter(self._last.encode(), self._work, self._writer))
        del self._writer

    def _made(self, document: IndexDocument) -> tantivy.Document:
        made = tantivy.Document()
        made.add_integer(ID_FIELD, document.id)
        path = document.path
        for length in range(len(path)):
            made.add_integer(DIRECTORY_FIELD, directory_key(path[:length]))
        first = True
        for value in document.values:
            if not isinstance(value, str):
                continue
            if not first:
                # Each empty text moves the next one on by a place.
                for _ in range(VALUE_GAP - 1):
                    made.add_text(TEXT_FIELD, "")
            first = False
            prepared = self._analysis.prepared(value)
            if isinstance(prepared, str):
                made.add_text(TEXT_FIELD, prepared)
            else:
                made.add_pre_tokenized_text(TEXT_FIELD, prepared)
        return made

    # -- dead documents ----------------------------------------------------------------------------

    def _forget(self, dead: BitMap) -> bool:
        gone = self._documents & dead
        if len(gone) < max(_LEAST_DEAD, int(_DEAD_PART * len(self._documents))):
            return False
        for number in gone:
            self._writer.delete_documents_by_term(ID_FIELD, number)
        self._documents -= gone
        return True

    # -- files -------------------------------------------------------------------------------------

    def _newest_number(self) -> int:
        """Returns the highest number that a state ever had here: numbers are not used again."""
        states = self._directory / _STATES
        states.mkdir(parents=True, exist_ok=True)
        found = [int(name, 16) for name in os.listdir(states) if not name.startswith("new-")]
        if self._base is not None:
            found.append(self._base.number)
        return max(found, default=0)

    def _begin_work(self) -> tuple[FilePath, tantivy.Index]:
        work = self._directory / f"{_WORK}{os.getpid()}-{secrets.token_hex(4)}"
        work.mkdir()
        if self._base is None:
            return work, make_index(work, self._analysis)
        try:
            _link_all(state_directory(self._directory, self._base), work)
            return work, open_index(work, self._analysis)
        except FileNotFoundError as error:
            raise CorruptRecord(
                "The last state of a full-text index is gone: it must be made anew."
            ) from error

    def _make_state(self, state: State) -> None:
        """Links the files of the last commit to a directory that is there whole, or not at all."""
        target = state_directory(self._directory, state)
        new = target.with_name(f"new-{target.name}")
        for attempt in range(_ATTEMPTS):
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            try:
                _link_all(self._work, new)
                break
            except FileNotFoundError:
                # A merge that has just ended took files away, and wrote another list of them.
                if attempt == _ATTEMPTS - 1:
                    raise
        self._documents.run_optimize()
        (new / _DOCUMENTS).write_bytes(self._documents.serialize())
        shutil.rmtree(target, ignore_errors=True)
        new.rename(target)

    def _remove_states(self, kept: set[int]) -> None:
        for entry in os.scandir(self._directory / _STATES):
            if entry.name.startswith("new-") or int(entry.name, 16) not in kept:
                shutil.rmtree(entry.path, ignore_errors=True)

    def _remove_others(self) -> None:
        """Removes working copies that a crash left, and those of a process that no longer writes."""
        for entry in os.scandir(self._directory):
            if entry.name.startswith(_WORK) and entry.name != self._work.name:
                shutil.rmtree(entry.path, ignore_errors=True)


def _link_all(source: FilePath, target: FilePath) -> None:
    """Links the files of an index to another directory, by its list as it is now."""
    meta = (source / META_FILE).read_bytes()
    for name in segment_files(meta):
        os.link(source / name, target / name)
    (target / META_FILE).write_bytes(meta)
    # The library removes no file that this list does not name.
    (target / _MANAGED).write_text(json.dumps([META_FILE, *segment_files(meta)]))
