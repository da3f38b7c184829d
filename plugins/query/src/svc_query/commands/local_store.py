"""The queries of a database file: indexed and answered in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from svc.errors import InvalidInput, NotFound
from svc.plugin import Database, EntryKind, Path, Version, format_path, progress_bar
from svc_query.api import INDEX_TYPES, PARSERS, Parser, ParserInput
from svc_query.asking import Asker, settings_of
from svc_query.bodies import QueryBody, SearchBody
from svc_query.commands.sampling import MAXIMUM_SAMPLE, Spread
from svc_query.commands.stores import Document, Sample
from svc_query.indexing import finish_work, read_status, rebuild
from svc_query.indexing.view import view_of
from svc_query.parsing import ParserPool, choose_parser

__all__ = ["LocalQueries"]

T = TypeVar("T", bound=msgspec.Struct)

_MOST_LISTED = 200_000
_PAST = ("snapshot", "version", "fork")


class LocalQueries:
    """See ``QueryStore``. Whoever holds the file is root."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asker = Asker.of(database, view_of(database).context)

    def query(self, request: Document) -> Document:
        """Answers a request of ``POST /query``."""
        body = _body(request, QueryBody)
        self._index(request)
        return self._asker.query(body)

    def search(self, request: Document) -> Document:
        """Answers a request of ``POST /files/search``."""
        body = _body(request, SearchBody)
        self._index(request)
        return self._asker.search(body)

    def status(self, path: Path, after: str | None, limit: int) -> Document:
        """A page of what is indexed at and below a path."""
        return read_status(self._database, path, after, limit, wait_until=0.0)

    def rebuild(self, path: Path, progress: Callable[[int, int], None]) -> Document:
        """Indexes everything at and below a path anew."""
        if path and self._database.at().get(path) is None:
            raise NotFound("There is nothing at this path.", path=format_path(path))
        rebuild(self._database, path)
        finish_work(self._database, progress=progress)
        return {"rebuilding": False, "path": format_path(path)}

    def read(self, path: Path) -> bytes | None:
        """The content of a file; None when there is none."""
        version = self._database.at()
        entry = version.get(path)
        return None if entry is None or entry.kind is not EntryKind.FILE else version.read_all(entry)

    def write(self, path: Path, content: bytes) -> None:
        """Stores a JSON file."""
        with self._database.transaction(message="svc index suggest") as transaction:
            transaction.put(path, content, content_type="application/json")

    def samples(self, path: Path, count: int) -> Iterator[Sample]:
        """Files below a directory, spread over it."""
        version = self._database.at()
        chosen: Spread[Path] = Spread(count)
        for number, (found, entry) in enumerate(version.walk_files(path)):
            if number >= _MOST_LISTED:
                break
            if entry is not None and ".svc-config" not in found:
                chosen.add(found)
        found_parsers = self._asker.context.extensions(PARSERS)
        parsers = {name: one.value for name, one in found_parsers.items()}
        pool = ParserPool(settings_of(self._asker.context))
        try:
            for found in chosen.items:
                yield _sample(version, found, parsers, pool)
        finally:
            pool.close()

    def index_types(self) -> frozenset[str] | None:
        """Names of the index types that there are."""
        return frozenset(self._asker.context.extensions(INDEX_TYPES))

    def _index(self, request: Document) -> None:
        """Does all the work of the index that is left, unless the answer does without."""
        if any(name in request for name in _PAST) or request.get("consistency") == "eventual":
            return
        with progress_bar("Indexing") as progress:
            finish_work(self._database, progress=progress)


def _body(request: Document, form: type[T]) -> T:
    try:
        return msgspec.convert(request, form)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error)) from None


def _sample(version: Version, path: Path, parsers: dict[str, Parser], pool: ParserPool) -> Sample:
    entry = version.get(path)
    if entry is None or entry.kind is not EntryKind.FILE:
        return Sample(path, None, None)
    parser = choose_parser(parsers, entry.content_type, path[-1], None)
    document: Any = None
    if parser is not None and entry.size <= MAXIMUM_SAMPLE:
        source = ParserInput(path[-1], entry.content_type, entry.size)
        document = pool.parse(parser, version.read(entry), source).document
    return Sample(path, entry.content_type, document)
