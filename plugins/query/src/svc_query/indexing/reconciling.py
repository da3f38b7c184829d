"""Brings the document of one path in step with what stands there.

Everything that changes documents goes through here, commits and jobs alike: the outcome depends on the
version and the path alone, so that what comes twice, or in another order, changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from svc.errors import ServiceUnavailable
from svc.plugin import Entry, EntryKind, Path, Version, format_path, is_system_path
from svc_query.api import IndexType, Parser
from svc_query.configuration import QueryConfiguration
from svc_query.index_configuration import directory_of, is_configuration
from svc_query.indexing import keys
from svc_query.indexing.effective import Configurations, Effective, Resolver, Way
from svc_query.indexing.extraction import Reading, Values, carried_over, choose, extract_values, parse_here
from svc_query.indexing.rows import DirectoryRow, DocumentRow, FailureRow, State, decode_row, decode_texts
from svc_query.indexing.table import LONG, NONE, Table

__all__ = ["Extensions", "Reconciler", "is_document", "is_same_file"]

_FILE = EntryKind.FILE

logger = logging.getLogger("svc.plugin.query")


class Extensions:
    """The index types and parsers in use, and what is made of them.

    Attributes:
        type_names: names the types with their formats; where they change, documents are made anew.
        parser_names: names the parsers; where they change, files may have to be read.
    """

    def __init__(
        self,
        types: Mapping[str, IndexType],
        parsers: Mapping[str, Parser],
        configuration: QueryConfiguration,
        providers: frozenset[str],
        is_enabled: Callable[[str], bool],
        is_broken: Callable[[str], bool],
    ) -> None:
        self.providers = providers
        self._is_enabled = is_enabled
        self._is_broken = is_broken
        self.types = types
        self.parsers = parsers
        self.configuration = configuration
        self.configurations = Configurations(types, configuration.maximum_fields, configuration.maximum_text)
        self.type_names = ",".join(sorted(f"{name}:{found.format}" for name, found in types.items()))
        self.parser_names = ",".join(sorted(parsers))

    def are_noted(self, state: State) -> bool:
        """Whether the documents were made with these."""
        return (state.types, state.parsers) == (self.type_names, self.parser_names)

    def note(self, state: State) -> None:
        """Notes in the state, which is to be written, that documents are made with these from now on."""
        state.types, state.parsers = self.type_names, self.parser_names
        state.providers = tuple(sorted(self.providers))

    def missing(self, state: State) -> str | None:
        """A plugin that documents were made with, that is enabled, and that this process was not given.

        One that is broken is missing nowhere: its indexes rest, and are made anew when it is mended.
        """
        absent = (one for one in state.providers if one not in self.providers)
        return next((one for one in absent if self._is_enabled(one) and not self._is_broken(one)), None)

    def may_replace(self, state: State) -> bool:
        """Whether a change of what is in use is this process's to follow.

        Processes hear of it at different moments, and may have been started with different plugins: those
        that have other ones than the database has enabled would take back what the others do, by turns.
        """
        return self.missing(state) is None and all(self._is_enabled(one) for one in self.providers)

    def refuse(self, plugin_id: str) -> NoReturn:
        """Says, by ServiceUnavailable, that this process cannot index."""
        raise ServiceUnavailable(
            f"The plugin {plugin_id!r} is enabled in this database, which is indexed with it, but is not in "
            "use in this process, and no other one works on the index: allow it here (SVC_PLUGINS), or "
            "disable it.",
            plugin=plugin_id,
            retry_after=5,
        )


def is_document(path: Path, entry: Entry) -> bool:
    """Whether what stands at a path is a document of the index."""
    is_file = entry.kind is _FILE and bool(path)
    return is_file and not is_system_path(path) and not is_configuration(path)


class Reconciler:
    """Brings documents in step with one version.

    ``owner_of`` says who wrote a file, as it stands in keys; empty where that is not known.
    """

    def __init__(
        self,
        table: Table,
        extensions: Extensions,
        version: Version,
        owner_of: Callable[[Path], bytes] = lambda path: b"",
    ) -> None:
        self._owner_of = owner_of
        self._table = table
        self._extensions = extensions
        self._version = version
        self._resolver = Resolver(extensions.configurations, version)

    def path(
        self,
        path: Path,
        entry: Entry | None,
        until: int = 0,
        *,
        reads: bool = False,
        is_new: bool = False,
        unread: bool = False,
    ) -> None:
        """Brings the document of a path in step with ``entry``, what stands there in the version.

        A document with a number below ``until`` is made anew in any case; ``reads``: its file is read again
        then. ``is_new``: it is known that there is none. ``unread`` leaves it as it is where its file would
        have to be read.
        """
        key = keys.key_of_path(path)
        number = 0 if is_new else self._table.number_of(key)
        directory = directory_of(path)
        if directory is not None:
            self.directory(directory)
        if entry is not None and is_document(path, entry):
            self._file(path, key, entry, self._resolver.of(path), number, until, reads, unread)
        elif number:
            self._table.remove(key, number)

    def directory(self, directory: Path) -> bool:
        """Notes the configuration of a directory; returns whether it is another than before."""
        found = self._extensions.configurations.read(self._version, directory)
        row = None if found is None else DirectoryRow(found[0], found[1].content, found[1].problem)
        return self._table.set_directory(directory, row)

    def missing_directories(self, path: Path) -> None:
        """Forgets configurations at and below a path that are gone."""
        known = [keys.key_of_path(path)] if path else []
        known += [key[1:] for key, _ in self._table.storage.scan(keys.DIRECTORY + keys.below_key(path))]
        for key in known:
            self.directory(keys.path_of_key(key))

    def parsed(
        self, path: Path, number: int, entry: Entry, results: Mapping[Way, Any], reading: Reading
    ) -> None:
        """Takes in what child processes made of a file that waited, unless it has changed meanwhile."""
        key = keys.key_of_path(path)
        effective = self._resolver.of(path)
        row = self._table.row(number)
        if (
            row is None
            or self._table.number_of(key) != number
            or not is_same_file(row, entry)
            or self._table.configuration_number(effective) != row.configuration
            or row.parser != reading.label
        ):
            return
        self._table.stop_waiting(key)
        found = extract_values(effective, results, reading, self._extensions.configuration.maximum_values)
        if any(found.values):
            new = _row_of(path, entry, reading.label)
            number = self._table.put(key, (number, row), new, found.values, effective)
        self._note(path, key, number, found, effective)

    def _file(
        self,
        path: Path,
        key: bytes,
        entry: Entry,
        effective: Effective,
        number: int,
        until: int,
        reads: bool,
        unread: bool,
    ) -> None:
        table = self._table
        row = table.row(number) if number else None
        old = None if row is None else (number, row)
        reading = choose(effective, entry, path[-1], self._extensions.parsers) if effective.plans else None
        label = "" if reading is None else reading.label
        renewed = number < until
        values: Sequence[list[Any]] | None = None
        if (
            old is not None
            and not renewed
            and is_same_file(old[1], entry)
            and old[1].parser == label
            and table.configuration_number(effective) == old[1].configuration
        ):
            return
        if old is not None and not (renewed and reads) and _is_same_content(old[1], entry):
            values = self._carried(old, effective, label)
        new = _row_of(path, entry, label)
        is_waiting = bool(number) and table.waiting_number(key) == number
        if reading is None or not reading.is_needed:
            found = Values([[] for _ in effective.contents])
            if reading is not None:
                found = extract_values(effective, {}, reading, 1)
            self._put_found(path, key, old, new, found, effective)
        elif values is not None and not is_waiting:
            number = table.put(key, old, new, values, effective)
            self._keep_failure(key, number)
        elif unread:
            return
        elif reading.is_quick(entry.size):
            results = parse_here(self._version, path, entry, reading)
            found = extract_values(effective, results, reading, self._extensions.configuration.maximum_values)
            self._put_found(path, key, old, new, found, effective)
        else:
            number = table.put(key, old, new, None, effective)
            if old is not None:
                table.set_failure(key, None)
                self._note_guess(key, "")
            table.wait(key, number, self._owner_of(path))

    def _put_found(
        self,
        path: Path,
        key: bytes,
        old: tuple[int, DocumentRow] | None,
        new: DocumentRow,
        found: Values,
        effective: Effective,
    ) -> None:
        if old is not None:
            self._table.stop_waiting(key)
        number = self._table.put(key, old, new, found.values, effective)
        self._note(path, key, number, found, effective, had=old is not None)

    def _carried(
        self, old: tuple[int, DocumentRow], effective: Effective, label: str
    ) -> list[list[Any]] | None:
        """The values that the old document has for the fields of a configuration; None: read it anew."""
        number, row = old
        if row.parser != label:
            return None
        fields = [field for field in self._table.configuration(row.configuration).fields if field.source]
        places = carried_over(row.values, fields, effective)
        if places is None:
            return None
        values: list[list[Any]] = []
        for place in places:
            found = row.values[place]
            if found == LONG:
                stored = self._table.storage.get(keys.text_key(number, place))
                if stored is None:
                    return None
                found = decode_texts(stored)
            values.append([] if found == NONE else found)
        return values

    def _keep_failure(self, key: bytes, number: int) -> None:
        value = self._table.storage.get(keys.FAILURE + key)
        if value is not None:
            failure: FailureRow = decode_row(FailureRow, value)
            failure.number = number
            failure.indexes = {}
            useful = failure.message or failure.not_converted
            self._table.set_failure(key, failure if useful else None)

    def _note(
        self, path: Path, key: bytes, number: int, found: Values, effective: Effective, *, had: bool = True
    ) -> None:
        if found.guess or had:
            self._note_guess(key, found.guess)
        if found.failure or found.not_converted:
            row = FailureRow(number, time.time_ns() // 1_000_000, found.failure, dict(found.not_converted))
            self._table.set_failure(key, row)
            if effective.logging and found.failure:
                logger.info("%s is not indexed by its content: %s", format_path(path), found.failure)
        elif had:
            self._table.set_failure(key, None)

    def _note_guess(self, key: bytes, encoding: str) -> None:
        """Notes the encoding that was guessed for a file; empty: none was."""
        if encoding:
            self._table.storage.put(keys.GUESS + key, encoding.encode())
        else:
            self._table.storage.delete(keys.GUESS + key)


def _row_of(path: Path, entry: Entry, label: str) -> DocumentRow:
    return DocumentRow(
        "\x01".join(path),
        entry.size,
        entry.content_type,
        entry.created_ms,
        entry.updated_ms,
        entry.hash,
        0,
        label,
    )


def _is_same_content(row: DocumentRow, entry: Entry) -> bool:
    return row.hash == entry.hash and row.content_type == entry.content_type


def is_same_file(row: DocumentRow, entry: Entry) -> bool:
    """Whether a document was made of a file as it is now."""
    return (
        row.hash == entry.hash
        and row.updated_ms == entry.updated_ms
        and row.created_ms == entry.created_ms
        and row.content_type == entry.content_type
        and row.size == entry.size
    )
