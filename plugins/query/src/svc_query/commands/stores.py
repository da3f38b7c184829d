"""What the commands ask of a database, in a file or a server, by the documents of the routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from svc.errors import SvcError
from svc.plugin import Path, Source

__all__ = ["PLUGIN_ID", "Document", "QueryStore", "Sample", "open_query_store"]

PLUGIN_ID = "query"

Document = dict[str, Any]

Progress = Callable[[int, int], None]


class Sample(NamedTuple):
    """A file that ``svc index suggest`` looks at; ``document`` is None when no parser makes one of it."""

    path: Path
    content_type: str | None
    document: Any


class QueryStore(Protocol):
    """The queries of one database. Methods block and raise the errors of ``svc.errors``."""

    def query(self, request: Document) -> Document:
        """Answers a request of ``POST /query``."""

    def search(self, request: Document) -> Document:
        """Answers a request of ``POST /files/search``."""

    def status(self, path: Path, after: str | None, limit: int) -> Document:
        """A page of what is indexed at and below a path."""

    def rebuild(self, path: Path, progress: Progress) -> Document:
        """Indexes everything at and below a path anew; a server only begins to."""

    def read(self, path: Path) -> bytes | None:
        """The content of a file; None when there is none."""

    def write(self, path: Path, content: bytes) -> None:
        """Stores a JSON file."""

    def samples(self, path: Path, count: int) -> Iterator[Sample]:
        """Files below a directory, spread over it."""

    def index_types(self) -> frozenset[str] | None:
        """Names of the index types that there are; None when that can't be known."""


@contextmanager
def open_query_store(source: Source, *, writable: bool = False) -> Iterator[QueryStore]:
    """Opens the store that a command asks, for as long as the context lasts."""
    try:
        with source.open_store(
            PLUGIN_ID,
            local="svc_query.commands.local_store:LocalQueries",
            remote="svc_query.commands.remote_store:RemoteQueries",
            read_only=not writable,
        ) as store:
            yield store
    except SvcError as error:
        path = error.details.get("path")
        if isinstance(path, str) and path not in error.message:
            error.message = f"{path}: {error.message}"
        raise
