"""The history of a server's database."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from urllib.parse import quote

import msgspec

from svc.paths import Path, format_path
from svc_client.failures import foreign_answer
from svc_client.files import HEAD, ReadAt, file_url
from svc_client.models import (
    Blame,
    Commit,
    CommitDetails,
    Comparison,
    HistoryRow,
    Page,
    PathChange,
)
from svc_client.paging import ArrayReader, all_items
from svc_client.transport import Transport

__all__ = ["Versions"]


class _Log(msgspec.Struct):
    commits: list[Commit]
    has_more: bool
    next_cursor: str | None
    damaged_commits: tuple[int, ...] = ()


class _History(msgspec.Struct):
    history: list[HistoryRow]
    has_more: bool
    next_cursor: str | None
    damaged_commits: tuple[int, ...] = ()


class Versions:
    """``/versions``: a version is named by a snapshot, a root hash, ``forks/<name>``, a time, or ``HEAD``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def resolve(self, name: str) -> str:
        """Returns the hex root hash that a name of a version means now.

        Raises:
            NotFound: it names none.
        """
        query = {"from": name, "to": name}
        return self._transport.json("GET", "/versions/compare", Comparison, query=query).source

    def log_page(
        self,
        path: str | Path = "/",
        *,
        fork: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[Commit]:
        """Returns a page of the commits that touched what is at or below a path, newest first."""
        query = _query(path=_text(path), fork=fork, limit=limit, after=after)
        found = self._transport.json("GET", "/versions/log", _Log, query=query)
        return Page(found.commits, found.next_cursor, damaged_commits=found.damaged_commits)

    def log(self, path: str | Path = "/", *, fork: str | None = None) -> Iterator[Commit]:
        """Yields the commits that touched what is at or below a path, newest first."""
        return all_items(lambda after: self.log_page(path, fork=fork, limit=1000, after=after))

    def commit(self, version: str, *, limit: int | None = None, after: str | None = None) -> CommitDetails:
        """Returns a commit with a page of what it changed.

        Args:
            version: the commit's number, or any name of the version that it made.
            limit: most changes.
            after: the cursor of the page before.
        """
        query = _query(limit=limit, after=after)
        return self._transport.json("GET", _named("commits", version), CommitDetails, query=query)

    def history_page(
        self,
        path: str | Path,
        *,
        commits: bool = False,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[HistoryRow]:
        """Returns a page of what became of a path from snapshot to snapshot, newest first.

        Args:
            path: where.
            commits: over every commit that touched it instead.
            limit: most rows.
            after: the cursor of the page before.
        """
        query = _query(limit=limit, after=after)
        if commits:
            query["commits"] = "true"
        url = file_url("/versions/file-history/", path)
        found = self._transport.json("GET", url, _History, query=query)
        return Page(found.history, found.next_cursor, damaged_commits=found.damaged_commits)

    def history(self, path: str | Path, *, commits: bool = False) -> Iterator[HistoryRow]:
        """Yields what became of a path, newest first; see ``history_page``."""
        return all_items(lambda after: self.history_page(path, commits=commits, after=after))

    def compare(
        self, source: str, to: str = "HEAD", path: str | Path = "/"
    ) -> Generator[PathChange, None, Comparison]:
        """Yields what differs between two versions in path order, while it comes.

        Returns:
            What was compared, and the totals: the generator's return value.

        Raises:
            NotFound: a name means no version.
        """
        query = {"from": source, "to": to, "path": _text(path)}
        response = self._transport.request("GET", "/versions/compare", query=query)
        with response:
            reader = ArrayReader(response.pieces(), "changes")
            try:
                for item in reader.items():
                    yield msgspec.convert(item, PathChange)
                return msgspec.convert(reader.members, Comparison)
            except (ValueError, RecursionError):
                raise foreign_answer(self._transport.address.url) from None

    def blame(
        self,
        path: str | Path,
        at: ReadAt = HEAD,
        *,
        text: bool = True,
        limit: int | None = None,
        after: str | None = None,
    ) -> Blame:
        """Returns which commit each line of a file comes from; of a directory a page of its entries."""
        query = at.query() | _query(limit=limit, after=after)
        if not text:
            query["text"] = "false"
        return self._transport.json("GET", file_url("/versions/blame/", path), Blame, query=query)


def _named(kind: str, name: str) -> str:
    return f"/versions/{kind}/{quote(name, safe='')}"


def _query(**values: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}


def _text(path: str | Path) -> str:
    return path if isinstance(path, str) else format_path(path)
