"""Snapshots, forks, merges, restores, and the history of a server's database."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from svc.paths import Path, format_path
from svc_client.failures import foreign_answer
from svc_client.files import HEAD, ReadAt, file_url
from svc_client.models import (
    AbandonedFork,
    Blame,
    Commit,
    CommitDetails,
    Comparison,
    Fork,
    HistoryRow,
    Lifecycle,
    Merge,
    Page,
    PathChange,
    PathRestore,
    Promotion,
    Snapshot,
    SnapshotRestore,
)
from svc_client.paging import ArrayReader, all_items
from svc_client.transport import Transport

__all__ = ["Versions"]

Strategy = Literal["fail", "ours", "theirs"]


class _Deleted(msgspec.Struct):
    deleted: Literal[True]


class _Snapshots(msgspec.Struct):
    snapshots: list[Snapshot]


class _Forks(msgspec.Struct):
    forks: list[Fork]


class _AbandonedForks(msgspec.Struct):
    forks: list[AbandonedFork]


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

    # Snapshots

    def snapshots(self) -> list[Snapshot]:
        """Returns all snapshots, newest first."""
        return self._transport.json("GET", "/versions/snapshots", _Snapshots).snapshots

    def snapshot(self, name: str) -> Snapshot:
        """Returns one snapshot."""
        return self._transport.json("GET", _named("snapshots", name), Snapshot)

    def create_snapshot(
        self,
        name: str,
        *,
        metadata: dict[str, Any] | None = None,
        fork: str | None = None,
        version: str | None = None,
    ) -> tuple[Snapshot, bool]:
        """Makes a snapshot of HEAD, a fork or a root hash; returns it and whether it is new.

        One of the same version that exists is returned instead of another.

        Raises:
            AlreadyExists: the name is taken.
        """
        value = _given(name=name, metadata=metadata, fork=fork, version=version)
        response = self._transport.request(
            "POST",
            "/versions/snapshots",
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode(value),
        )
        return response.json(Snapshot), response.status == 201

    def rename_snapshot(self, name: str, new_name: str) -> Snapshot:
        """Gives a snapshot another name."""
        return self._transport.json(
            "PATCH", _named("snapshots", name), Snapshot, value={"name": new_name}, repeatable=False
        )

    def delete_snapshot(self, name: str) -> None:
        """Deletes a snapshot."""
        self._transport.json("DELETE", _named("snapshots", name), _Deleted)

    def restore_snapshot(self, name: str) -> SnapshotRestore:
        """Makes a snapshot HEAD; what HEAD was stays in a snapshot of its own."""
        return self._transport.json("POST", "/versions/restore", SnapshotRestore, value={"name": name})

    def restore(
        self,
        path: str | Path,
        *,
        snapshot: str | None = None,
        version: str | None = None,
        at: str | None = None,
    ) -> PathRestore:
        """Puts a file, link or directory back as a version has it: a snapshot, a root hash or a time."""
        value = _given(snapshot=snapshot, version=version, at=at)
        url = file_url("/versions/file-restore/", path)
        return self._transport.json("POST", url, PathRestore, value=value)

    # Forks

    def forks(self) -> list[Fork]:
        """Returns the active forks, newest first."""
        return self._transport.json("GET", "/versions/forks", _Forks).forks

    def abandoned_forks(self) -> list[AbandonedFork]:
        """Returns what is left of abandoned forks, newest first."""
        query = {"abandoned": "true"}
        return self._transport.json("GET", "/versions/forks", _AbandonedForks, query=query).forks

    def fork(self, name: str) -> Fork:
        """Returns one fork."""
        return self._transport.json("GET", _named("forks", name), Fork)

    def create_fork(self, name: str, *, base: str | None = None) -> Fork:
        """Makes a fork of a version; of HEAD without one.

        Raises:
            AlreadyExists: the name is taken.
        """
        return self._transport.json("POST", "/versions/forks", Fork, value=_given(name=name, base=base))

    def promote_fork(self, name: str, *, force: bool = False) -> Promotion:
        """Makes a fork's state HEAD.

        Raises:
            Conflict: HEAD has moved since the fork began, and ``force`` is false.
        """
        url = _named("forks", name) + "/promote"
        return self._transport.json("POST", url, Promotion, value={"force": force})

    def abandon_fork(self, name: str) -> str:
        """Abandons a fork and returns the root hash of its last state."""
        answer = self._transport.json("DELETE", _named("forks", name), _RootHash)
        return answer.root_hash

    def merge(
        self,
        source: str,
        into: str = "HEAD",
        *,
        strategy: Strategy = "fail",
        message: str | None = None,
        dry_run: bool = False,
    ) -> Merge:
        """Merges a fork or a snapshot into HEAD or a fork.

        Raises:
            Conflict: both changed a path and no strategy decides; ``conflicts`` in the details.
        """
        value = _given(message=message, into=into, strategy=strategy, dry_run=dry_run) | {"from": source}
        return self._transport.json("POST", "/versions/merge", Merge, value=value)

    # History

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

    def lifecycle(self) -> Lifecycle:
        """Returns the lifecycle settings of snapshots."""
        return self._transport.json("GET", "/system/lifecycle", Lifecycle)

    def set_lifecycle(self, settings: dict[str, Any]) -> Lifecycle:
        """Changes lifecycle settings; what is not named stays."""
        return self._transport.json("PUT", "/system/lifecycle", Lifecycle, value=settings)


class _RootHash(msgspec.Struct):
    root_hash: str


def _named(kind: str, name: str) -> str:
    return f"/versions/{kind}/{quote(name, safe='')}"


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _query(**values: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}


def _text(path: str | Path) -> str:
    return path if isinstance(path, str) else format_path(path)
