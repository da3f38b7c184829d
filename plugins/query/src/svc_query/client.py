"""Queries of a server for programs: what ``svc_client`` has for files, for this plugin's routes.

``Queries(client).query("/books", 'year > 1990')`` takes a filter as people write it, or its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from svc_client import Client
from svc_query.syntax import parse_filter

__all__ = ["Answer", "Hit", "Queries", "SearchAnswer"]

Document = dict[str, Any]

_PAGE = 1_000


class Hit(Struct, frozen=True, kw_only=True):
    """A file that was found.

    Attributes:
        path: where it stands.
        total_size: bytes.
        content_type: media type.
        created_at: Unix milliseconds.
        updated_at: Unix milliseconds.
        score: above 0 and at most 1, which is an exact match.
        matched_by: names of the fields that matched, sorted.
        matches: where in its fields it matches, if that was asked for.
    """

    path: str
    total_size: int
    content_type: str | None
    created_at: int
    updated_at: int
    score: float
    matched_by: list[str]
    matches: list[Document] = []


class Answer(Struct, frozen=True, kw_only=True):
    """A page of a query's hits.

    Attributes:
        results: the hits.
        has_more: whether more follow.
        total_count: how many there are in all, if that was asked for.
        next_cursor: what the next page takes as ``after``.
        prev_cursor: what the page before takes as ``before``.
        meta: what is not as usual: a reindex that goes on, a version that no index knows.
    """

    results: list[Hit]
    has_more: bool
    total_count: int | None = None
    next_cursor: str | None = None
    prev_cursor: str | None = None
    meta: Document = {}


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """A page of a search's hits; ``total_count`` is how many there are in all."""

    results: list[Hit]
    has_more: bool
    total_count: int | None = None
    meta: Document = {}


class Queries:
    """The routes of the plugin ``query``. Methods block, and raise the errors of ``svc.errors``.

    Args:
        client: of the server; the caller closes it.
    """

    def __init__(self, client: Client) -> None:
        self._transport = client.transport

    def ask(self, request: Document) -> Document:
        """Returns what ``POST /query`` answers to a request, both as JSON."""
        return self._post("/query", request)

    def ask_search(self, request: Document) -> Document:
        """Returns what ``POST /files/search`` answers to a request, both as JSON."""
        return self._post("/files/search", request)

    def query(self, path: str, where: str | Document | Sequence[Document] = "", **options: Any) -> Answer:
        """Returns a page of the files at and below a path that meet a filter.

        Args:
            path: the directory.
            where: the filter as text, or its JSON; everything without one.
            options: other members of the request: ``limit``, ``order_by``, ``after``, ``include_total``.

        Raises:
            FilterSyntaxError: the text can't be read.
            InvalidInput: a field has no index that the filter needs, or an option is wrong.
            NotFound: there is no such directory, or nothing in it is indexed.
        """
        return msgspec.convert(self.ask({"path": path, "where": _filter(where), **options}), Answer)

    def all(
        self, path: str, where: str | Document | Sequence[Document] = "", **options: Any
    ) -> Iterator[Hit]:
        """Yields all hits, page by page while they are used; see ``query``."""
        after: str | None = None
        while True:
            place = {} if after is None else {"after": after}
            page = self.query(path, where, **{"limit": _PAGE, **options, **place})
            yield from page.results
            after = page.next_cursor
            if after is None:
                return

    def count(self, path: str, where: str | Document | Sequence[Document] = "") -> int:
        """Returns how many files meet a filter."""
        found = self.aggregate(path, where, count=True)
        return int(found["count"])

    def aggregate(self, path: str, where: str | Document | Sequence[Document] = "", **what: Any) -> Document:
        """Returns sums over the files that meet a filter.

        Args:
            path: the directory.
            where: as for ``query``.
            what: ``count=True``; ``sum``, ``avg``, ``min`` and ``max`` with lists of fields; ``group_by``.
        """
        return self.ask({"path": path, "where": _filter(where), "aggregate": what})

    def search(
        self, words: str, *, path: str = "/", where: str | Document | Sequence[Document] = "", **options: Any
    ) -> SearchAnswer:
        """Returns the best hits of a full-text search below a path, best first.

        Args:
            words: as the operator ``search`` takes them.
            path: the directory.
            where: a filter that the hits must meet too.
            options: other members of the request: ``limit``, ``offset``.
        """
        request: Document = {"query": words, "path": path, **options}
        if where:
            request["where"] = _filter(where)
        return msgspec.convert(self.ask_search(request), SearchAnswer)

    def status(self, path: str = "/", **options: Any) -> Document:
        """Returns what is indexed at and below a path, how far that is, and what could not be read."""
        query = {"path": path} | {name: str(value) for name, value in options.items()}
        return self._transport.json("GET", "/query/status", Document, query=query)

    def rebuild(self, path: str = "/") -> Document:
        """Starts to index everything at and below a path anew; for root."""
        return self._transport.json("POST", "/query/rebuild", Document, value={"path": path})

    def _post(self, url: str, request: Document) -> Document:
        # It changes nothing, so it may be sent twice.
        return self._transport.json("POST", url, Document, value=request, repeatable=True)


def _filter(where: str | Document | Sequence[Document]) -> Any:
    return parse_filter(where) if isinstance(where, str) else where
