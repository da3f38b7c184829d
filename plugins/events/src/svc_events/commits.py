"""A commit as event types see it: what it changed, and the records of the system tree around it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec

from svc.errors import SvcError
from svc.plugin import Commit, Origin, Path, PathChange, TransactionRecord, Version, read_record

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["FeedCommit", "RecordGone", "SystemChange"]

T = TypeVar("T", bound=msgspec.Struct)

_HEAD = "HEAD"


class RecordGone(LookupError):
    """What stood there cannot be read any more: a collection took the tree of the commit."""


class SystemChange(msgspec.Struct, frozen=True):
    """One change of the system tree, or of a ref.

    Attributes:
        change: what was done; of kind ``ref`` it is a ref that was made, moved or removed.
        transaction: the transaction that did it.
    """

    change: PathChange
    transaction: TransactionRecord


class FeedCommit:
    """One commit, handed to event types. It lives for as long as its events are made.

    Attributes:
        commit: the record of the commit, which can be read for as long as the log is there.
        database: the database.
        gone: how many records were asked for that a collection had taken.
    """

    def __init__(self, database: Database, commit: Commit) -> None:
        self.commit = commit
        self.database = database
        self.gone = 0

    @cached_property
    def system_changes(self) -> tuple[SystemChange, ...]:
        """What it changed in the system tree, and the refs that it moved, HEAD among them; mostly few."""
        return tuple(
            SystemChange(change, record)
            for record in self.commit.transactions
            for change in record.changes
            if change.system or change.kind == "ref"
        )

    def file_changes(self) -> Iterator[PathChange]:
        """Yields what it changed in the files of HEAD, in order, and moves of HEAD; maybe a million."""
        return (change for change, _ in self.changes_and_origins())

    def changes_and_origins(self) -> Iterator[tuple[PathChange, Origin | None]]:
        """Yields the same, each with where it was made first; None: on this node."""
        for record in self.commit.transactions:
            origin = record.origin
            if record.ref != _HEAD:
                # A ref's own files; but a transaction on a fork may move HEAD.
                moves = (one for one in record.changes if one.kind == "ref" and one.path == (_HEAD,))
                yield from ((one, origin) for one in moves)
                continue
            for change in record.changes:
                if change.kind == "ref":
                    if change.path == (_HEAD,):
                        yield change, origin
                elif not change.system:
                    yield change, origin

    def system(self, *, before: bool = False) -> Version:
        """The system tree after the commit, or before it. A collection may have taken it since."""
        root = self.commit.parent_system_root if before else self.commit.system_root
        return self.database.version_of(root)

    def record(self, path: Path, form: type[T], *, before: bool = False) -> T | None:
        """Returns the record at a path of the system tree after the commit, or before it.

        Returns:
            The record; None when there was none, or none of this form.
        """
        try:
            system = self.system(before=before)
            return read_record(system, system.get(path), form, keep=False)
        except SvcError as error:
            self.gone += 1
            raise RecordGone(str(error)) from error
