"""A database with the view of the index, index types of terms and of a library, and the parser of JSON."""

from __future__ import annotations

import json
import logging
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath
from types import MappingProxyType, SimpleNamespace
from typing import Any

from pyroaring import BitMap

from svc.errors import InvalidInput
from svc.plugin import Database, Extension, Path, PluginContext
from svc_query.api import (
    INDEX_TYPES,
    IndexDocument,
    LibraryIndexType,
    LibraryReader,
    LibraryTail,
    LibraryWriter,
    Parser,
    TermIndexType,
    Value,
)
from svc_query.configuration import QueryConfiguration
from svc_query.indexing import IndexSnapshot, IndexView, finish_work, read_snapshot

FOREVER = float("inf")


class Words(TermIndexType):
    """A term for each value: kind and text."""

    name = "exact"
    format = 1
    ordered = True
    options = frozenset({"fold"})

    def normalize(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """See ``IndexType``."""
        fold = options.get("fold", False)
        if not isinstance(fold, bool):
            raise InvalidInput("'fold' must be true or false.", field="fold")
        return {"fold": fold}

    def terms(self, value: Value, options: Mapping[str, Any]) -> Iterable[bytes]:
        """See ``TermIndexType``; one text is refused."""
        if value == "raise":
            raise ValueError("it said so")
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
            return (b"n" + struct.pack(">q", value + (1 << 62)),)
        text = str(value)
        return (b"s" + (text.lower() if options["fold"] else text).encode(),)


class Names(LibraryIndexType):
    """A library that keeps a JSON file of documents for each flush."""

    name = "names"
    format = 1

    def open_writer(
        self, directory: FilePath, options: Mapping[str, Any], state: bytes | None
    ) -> LibraryWriter:
        """See ``LibraryIndexType``."""
        return _NamesWriter(directory, state)

    def open_reader(self, directory: FilePath, options: Mapping[str, Any], state: bytes) -> LibraryReader:
        """See ``LibraryIndexType``."""
        return NamesReader(json.loads((directory / state.decode()).read_text()))

    def open_tail(self, options: Mapping[str, Any]) -> LibraryTail:
        """See ``LibraryIndexType``."""
        return _NamesTail()


class _NamesWriter(LibraryWriter):
    def __init__(self, directory: FilePath, state: bytes | None) -> None:
        self._directory = directory
        self._number = 0 if state is None else int(state) + 1
        self._known = {} if state is None else json.loads((directory / state.decode()).read_text())

    def add(self, documents: Iterable[IndexDocument]) -> None:
        for document in documents:
            if "refused" in document.values:
                raise ValueError("it is refused")
            self._known[str(document.id)] = list(document.values)

    def flush(self, dead: BitMap) -> bytes:
        kept = {number: values for number, values in self._known.items() if int(number) not in dead}
        (self._directory / str(self._number)).write_text(json.dumps(kept))
        for old in range(self._number - 1):
            (self._directory / str(old)).unlink(missing_ok=True)
        return str(self._number).encode()

    def close(self) -> None:
        pass


class NamesReader(LibraryReader):
    """The values of all documents, by number as text."""

    def __init__(self, known: dict[str, list[Any]]) -> None:
        self.known = known

    @property
    def size(self) -> int:
        """See ``LibraryReader``."""
        return len(self.known)


class _NamesTail(LibraryTail):
    def __init__(self) -> None:
        self._known: dict[str, list[Any]] = {}

    def add(self, documents: Iterable[IndexDocument]) -> None:
        for document in documents:
            self._known[str(document.id)] = list(document.values)

    def reader(self, beside: LibraryReader | None = None) -> LibraryReader:
        return NamesReader(self._known)


class JsonHere(Parser):
    """JSON, parsed where it is indexed."""

    name = "json"
    content_types = frozenset({"application/json"})
    extensions = frozenset({"json"})
    in_process = True

    def parse(self, content: Any, source: Any) -> Any:
        """See ``Parser``."""
        return json.loads(content.read())


class Lines(Parser):
    """Lines of a text, parsed in child processes; a text that begins with ``slow`` takes 2 ms at least."""

    name = "lines"
    content_types = frozenset({"text/x-lines"})

    def parse(self, content: Any, source: Any) -> Any:
        """See ``Parser``."""
        text = content.read().decode()
        if text.startswith("bad"):
            raise ValueError("it is bad")
        if text.startswith("slow"):
            time.sleep(0.002)
        return {"lines": text.splitlines()}


class Source:
    """Which extensions are in use; tests change it."""

    def __init__(self) -> None:
        self._context: Any = SimpleNamespace(plugin_id="query")
        self.contexts: dict[str, Any] = {}
        self.broken: set[str] = set()
        self.types: dict[str, Any] = {"exact": Words(), "names": Names()}
        self.parsers: dict[str, Any] = {"json": JsonHere(), "lines": Lines()}
        self.use()

    def use(self) -> None:
        """Makes what was changed count."""
        self._types = MappingProxyType(
            {name: Extension(one, self.contexts.get(name, self._context)) for name, one in self.types.items()}
        )
        self._parsers = MappingProxyType(
            {name: Extension(one, self._context) for name, one in self.parsers.items()}
        )

    def extensions_of(self, driver_id: str, family: Any) -> Mapping[str, Any]:
        """See ``ExtensionSource``."""
        return self._types if family is INDEX_TYPES else self._parsers

    def is_current(self, plugin_id: str, configuration: Any) -> bool:
        """See ``ExtensionSource``."""
        return True

    def is_broken(self, plugin_id: str) -> bool:
        """See ``ExtensionSource``."""
        return plugin_id in self.broken


class Indexed:
    """An open database with the view."""

    def __init__(self, path: FilePath, source: Source, **settings: Any) -> None:
        self.source = source
        self.database = Database(path)
        self.context = PluginContext(
            "query", QueryConfiguration(**settings), self.database, logging.getLogger("test"), source
        )
        self.view = IndexView().bind(self.context)
        self.reader = self.database.register_view(self.view)

    def put(self, files: Mapping[str, Any], content_type: str = "application/json") -> None:
        """Stores files, JSON unless they are bytes, and deletes those that are None; in one commit."""
        with self.database.transaction() as transaction:
            for path, value in files.items():
                where = tuple(path.strip("/").split("/"))
                if value is None:
                    transaction.delete(where, recursive=True)
                else:
                    content = value if isinstance(value, bytes) else json.dumps(value).encode()
                    transaction.put(where, content, content_type=content_type)

    def configure(self, directory: str, *entries: Any, **members: Any) -> None:
        """Stores an ``indexes.json``."""
        members.setdefault("glob", "**/*")
        self.put({f"{directory}/.svc-config/indexes.json": {**members, "indexes": list(entries)}})

    def read(self, function: Callable[[IndexSnapshot], Any], **options: Any) -> Any:
        """Calls a function with a snapshot."""
        options.setdefault("minimum", None)
        options.setdefault("wait_until", FOREVER)
        return read_snapshot(self.database, function, **options)

    def finish(self) -> None:
        """Does all work that is left."""
        assert finish_work(self.database)

    def contents(self) -> dict[str, Any]:
        """All documents with their values, as paths and fields; without numbers."""
        found: dict[str, Any] = self.read(contents_of)
        return found

    def found(self, field: str, term: bytes, index_type: str = "exact") -> set[str]:
        """Paths of documents that a term index has, of those that are flushed."""

        def ask(snapshot: IndexSnapshot) -> set[str]:
            numbers = BitMap()
            for index in snapshot.indexes(field):
                if index.type.name == index_type:
                    numbers |= index.reader.postings(term)
            return {"/" + "/".join(document.path) for document in snapshot.documents(numbers)}

        found: set[str] = self.read(ask)
        return found

    def close(self) -> None:
        """Closes the database."""
        self.view.release()
        self.database.close()


def contents_of(snapshot: IndexSnapshot) -> dict[str, Any]:
    """All documents as a snapshot shows them."""
    found = {}
    for path, number in snapshot.in_path_order(()):
        document = snapshot.document(number)
        assert document is not None
        assert document.path == path
        names = [*document.fields, *getattr(document, "long", ())]
        fields = {name: list(snapshot.values(document, name)) for name in names}
        found["/" + "/".join(path)] = {**fields, "@size": document.size, "@hash": document.hash.hex()}
    assert len(found) == len(snapshot.live()) == snapshot.count_below(())
    return found


def paths(snapshot: IndexSnapshot, where: Path = (), **options: Any) -> list[str]:
    """The paths of all documents at and below one, in order."""
    return ["/" + "/".join(path) for path, _ in snapshot.in_path_order(where, **options)]
