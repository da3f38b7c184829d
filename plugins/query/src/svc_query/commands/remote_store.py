"""The queries of a server's database."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from svc.errors import NotFound
from svc.plugin import Path, format_path, parse_path
from svc_client import Client, EntryType
from svc_query.client import Queries
from svc_query.commands.sampling import MAXIMUM_SAMPLE, Spread, parse_plainly
from svc_query.commands.stores import Document, Sample

__all__ = ["RemoteQueries"]

_MOST_LISTED = 20_000


class RemoteQueries:
    """See ``QueryStore``."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._queries = Queries(client)

    def query(self, request: Document) -> Document:
        """Answers a request of ``POST /query``."""
        return self._queries.ask(request)

    def search(self, request: Document) -> Document:
        """Answers a request of ``POST /files/search``."""
        return self._queries.ask_search(request)

    def status(self, path: Path, after: str | None, limit: int) -> Document:
        """A page of what is indexed at and below a path."""
        place = {} if after is None else {"after": after}
        return self._queries.status(format_path(path), limit=limit, **place)

    def rebuild(self, path: Path, progress: Callable[[int, int], None]) -> Document:
        """Lets the server begin to index everything at and below a path anew."""
        return self._queries.rebuild(format_path(path))

    def read(self, path: Path) -> bytes | None:
        """The content of a file; None when there is none."""
        try:
            return self._client.files.read(path)
        except NotFound:
            return None

    def write(self, path: Path, content: bytes) -> None:
        """Stores a JSON file."""
        self._client.files.put(path, content, content_type="application/json")

    def samples(self, path: Path, count: int) -> Iterator[Sample]:
        """Files below a directory, spread over the first of them that are listed."""
        chosen: Spread[tuple[Path, str | None, int]] = Spread(count)
        for seen, entry in enumerate(self._client.files.list(path, depth=-1)):
            if seen >= _MOST_LISTED:
                break
            if entry.entry_type is EntryType.FILE:
                chosen.add((parse_path(entry.path), entry.content_type, entry.size or 0))
        for where, content_type, size in chosen.items:
            document = None
            if size <= MAXIMUM_SAMPLE:
                content = self.read(where)
                document = None if content is None else parse_plainly(where, content_type, content)
            yield Sample(where, content_type, document)

    def index_types(self) -> frozenset[str] | None:
        """A server does not say; it refuses a configuration that it can't keep."""
        return None
