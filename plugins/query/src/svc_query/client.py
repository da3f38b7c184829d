"""Queries of a server for programs: what ``svc_client`` has for files, for this plugin's routes.

``Queries(client).query("/books", 'year > 1990')`` takes a filter as people write it, or its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from svc_client import Client
from svc_query.answers import Answer, FoundBySearch, Hit, Rebuilding, SearchAnswer, Status, answer_form
from svc_query.syntax import parse_filter

__all__ = ["Answer", "Hit", "Queries", "SearchAnswer"]

Document = dict[str, Any]

_PAGE = 1_000


class Queries:
    """The routes of the plugin ``query``. Methods block, and raise the errors of ``svc.errors``.

    Args:
        client: of the server; the caller closes it.
    """

    def __init__(self, client: Client) -> None:
        self._transport = client.transport

    def ask(self, request: Document) -> Document:
        """Returns what ``POST /query`` answers to a request, both as JSON."""
        return self._post("/query", request, answer_form(request))

    def ask_search(self, request: Document) -> Document:
        """Returns what ``POST /files/search`` answers to a request, both as JSON."""
        return self._post("/files/search", request, FoundBySearch)

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
        return self._transport.document("GET", "/query/status", Status, query=query)

    def rebuild(self, path: str = "/") -> Document:
        """Starts to index everything at and below a path anew; for root."""
        return self._transport.document("POST", "/query/rebuild", Rebuilding, value={"path": path})

    def _post(self, url: str, request: Document, form: type[msgspec.Struct]) -> Document:
        # It changes nothing, so it may be sent twice.
        return self._transport.document("POST", url, form, value=request, repeatable=True)


def _filter(where: str | Document | Sequence[Document]) -> Any:
    return parse_filter(where) if isinstance(where, str) else where
