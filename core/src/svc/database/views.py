"""Views: what is computed from the commit feed and remembers how far it has read.

A view's data and its "applied up to N" are written in one transaction, so that after a crash it goes on
from N, and computing it anew from the log gives exactly what incremental work gave. A reader names the
commit that it must see and the view catches up first: clients read their own writes.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, TypeVar

import lmdb
from blake3 import blake3

from svc.database.blocking import run_blocking
from svc.database.commit import Commit
from svc.database.version import Version
from svc.errors import DatabaseClosed, InsufficientStorage, NotFound, ReadOnly
from svc.objects.environments import SharedEnvironment, close_environment, is_full, open_environment

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["View", "ViewReader", "ViewStorage"]

T = TypeVar("T")

MARK = struct.Struct("<IQ16s")
MARK_KEY = b"mark"
MAP_SIZE = 1 << 38
_COMMITS_PER_TRANSACTION = 512
_LONG_KEY = 480
_KEPT_PREFIX = _LONG_KEY - 32


class View(Protocol):
    """What a plugin writes to follow the commit feed.

    Attributes:
        name: of the view, ``<plugin id>.<what>``; its data live under this name.
        format: number of the layout of its data; another number makes the view anew.
    """

    name: str
    format: int

    def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
        """Takes one commit into the view.

        Called once for each commit, in order, in one transaction with the mark that says so; may be
        called again for a commit whose transaction was lost. Runs in a worker thread or in the
        background; must depend on its arguments only.

        Args:
            commit: what was done.
            before: the user tree before it.
            after: the user tree after it.
            storage: the view's data.
        """
        ...


class ViewStorage:
    """Ordered byte keys and values of one view, within one transaction.

    Keys up to 479 bytes are ordered as bytes; longer ones by their first 448 bytes only.
    """

    def __init__(self, transaction: lmdb.Transaction, database: lmdb._Database) -> None:
        self._transaction = transaction
        self._database = database

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key, or None."""
        value = self._transaction.get(_stored_key(key), db=self._database)
        return None if value is None else _split_value(_stored_key(key), bytes(value))[1]

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a key; only while a commit is applied."""
        stored = _stored_key(key)
        if len(stored) == _LONG_KEY:
            value = struct.pack("<I", len(key)) + key + value
        self._transaction.put(stored, value, db=self._database)

    def delete(self, key: bytes) -> bool:
        """Removes a key and returns whether it was there; only while a commit is applied."""
        return bool(self._transaction.delete(_stored_key(key), db=self._database))

    def scan(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yields (key, value) in key order.

        Args:
            prefix: only keys that begin with it (at most 448 bytes of it count for the order).
            after: start behind this key.
        """
        cursor = self._transaction.cursor(self._database)
        shared = prefix[:_KEPT_PREFIX]
        start = shared if after is None else max(_stored_key(after), shared)
        found = cursor.set_range(start) if start else cursor.first()
        while found:
            stored = bytes(cursor.key())
            if not stored.startswith(shared):
                return
            key, value = _split_value(stored, bytes(cursor.value()))
            if key.startswith(prefix) and key != after:
                yield key, value
            found = cursor.next()


class ViewReader:
    """A view of one open database.

    Args:
        database: the database whose feed is followed.
        view: what to compute.
        directory: where the data of all views live.
    """

    def __init__(self, database: Database, view: View, directory: FilePath) -> None:
        self._database = database
        self._view = view
        self._directory = directory / view.name
        self._shared: SharedEnvironment | None = None
        self._ready = False
        self._mutex = threading.Lock()
        self._temporary: TemporaryDirectory[str] | None = None
        self._closed = False

    @property
    def applied(self) -> int:
        """Number of the last commit that is in the view."""
        with self._open().begin() as transaction:
            return self._mark(transaction)

    def read(self, function: Callable[[ViewStorage], T], *, minimum: int | None = None) -> T:
        """Calls a function with the view's data, once they hold what the caller must see.

        Args:
            function: reads from the storage; what it returns is returned. The storage is only valid
                inside it.
            minimum: number of the commit that must be in the view; None, or one that is not made yet,
                means HEAD's. Blocks until the view has caught up.
        """
        self.catch_up(minimum)
        shared = self._open()
        with shared.begin() as transaction:
            return function(ViewStorage(transaction, shared.databases[0]))

    def catch_up(self, minimum: int | None = None) -> int:
        """Applies what the feed holds up to a commit (None: HEAD's); returns the view's new mark."""
        head = self._database.head().sequence
        needed = head if minimum is None else min(minimum, head)
        applied = self.applied
        while applied < needed:
            applied = run_blocking(self._apply_some)
        return applied

    def rebuild(self) -> None:
        """Forgets the view's data and computes them anew from the first commit."""
        shared = self._open()
        with self._writing(shared) as transaction:
            transaction.drop(shared.databases[0], delete=False)
            self._set_mark(transaction, 0)
        self.catch_up()

    def close(self) -> None:
        """Closes the view's data."""
        with self._mutex:
            if self._shared is not None:
                close_environment(self._shared)
                self._shared = None
                self._ready = False
            self._closed = True
            if self._temporary is not None:
                self._temporary.cleanup()

    def _apply_some(self) -> int:
        """One transaction's worth of commits; in a plain thread, never across a greenlet switch."""
        shared = self._open()
        with self._writing(shared) as transaction:
            applied = self._mark(transaction)
            storage = ViewStorage(transaction, shared.databases[0])
            for count, commit in enumerate(self._database.commits(after=applied)):
                if count >= _COMMITS_PER_TRANSACTION:
                    break
                before = self._database.version_of(commit.parent_root)
                self._view.apply(commit, before, self._database.version_of(commit.root), storage)
                applied = commit.sequence
            self._set_mark(transaction, applied)
        return applied

    @contextmanager
    def _writing(self, shared: SharedEnvironment) -> Iterator[lmdb.Transaction]:
        try:
            with shared.begin(write=True) as transaction:
                yield transaction
        except lmdb.Error as error:
            if not is_full(error):
                raise
            raise InsufficientStorage(
                f"The disk is full or fails: the view {self._view.name} could not be written."
            ) from error

    def _open(self) -> SharedEnvironment:
        shared = self._shared
        if shared is None or not self._ready:
            with self._mutex:
                if self._closed:
                    raise DatabaseClosed("The database is closed.")
                shared = self._shared
                if shared is None:
                    shared = self._shared = self._open_shared()
                with shared.begin() as transaction:
                    belongs = self._belongs(transaction)
                if not belongs:
                    self._take_over(shared)
                self._ready = True
        return shared

    def _take_over(self, shared: SharedEnvironment) -> None:
        """Empties data of another layout or database, unless somebody else has done so meanwhile."""
        with self._writing(shared) as transaction:
            if not self._belongs(transaction):
                transaction.drop(shared.databases[0], delete=False)
                self._set_mark(transaction, 0)

    def _open_shared(self) -> SharedEnvironment:
        try:
            return open_environment(self._directory, MAP_SIZE, (b"data",))
        except ReadOnly:
            if not self._database.read_only:
                raise
        # A database on a medium that cannot be written: its views are this opening's own.
        self._temporary = TemporaryDirectory(prefix="svc-view-")
        return open_environment(FilePath(self._temporary.name), MAP_SIZE, (b"data",))

    def _belongs(self, transaction: lmdb.Transaction) -> bool:
        """Whether the data are of this layout and this database."""
        value = transaction.get(MARK_KEY)
        if value is None or len(value) != MARK.size:
            return False
        format_number, _, database_id = MARK.unpack(value)
        return (format_number, database_id) == (self._view.format, self._database.database_id)

    def _mark(self, transaction: lmdb.Transaction) -> int:
        value = transaction.get(MARK_KEY)
        return 0 if value is None else int(MARK.unpack(value)[1])

    def _set_mark(self, transaction: lmdb.Transaction, applied: int) -> None:
        mark = MARK.pack(self._view.format, applied, self._database.database_id)
        transaction.put(MARK_KEY, mark)


class ViewSet:
    """The views of one open database, by name.

    Args:
        database: whose feed they follow.
        directory: where their data live.
    """

    def __init__(self, database: Database, directory: FilePath) -> None:
        self._database = database
        self._directory = directory
        self._readers: dict[str, ViewReader] = {}

    def register(self, view: View) -> ViewReader:
        """Makes a view known; registering the same name again replaces nothing."""
        reader = self._readers.get(view.name)
        if reader is None:
            reader = self._readers[view.name] = ViewReader(self._database, view, self._directory)
        return reader

    def get(self, name: str) -> ViewReader:
        """Returns a view.

        Raises:
            NotFound: no view of this name is registered.
        """
        reader = self._readers.get(name)
        if reader is None:
            raise NotFound(f"There is no view named {name}.")
        return reader

    def all(self) -> dict[str, ViewReader]:
        """Returns all views by name."""
        return dict(self._readers)

    def close(self) -> None:
        """Closes all views."""
        for reader in self._readers.values():
            reader.close()


def _stored_key(key: bytes) -> bytes:
    """LMDB takes keys up to 511 bytes: a longer one is cut and told apart by its hash."""
    return key if len(key) < _LONG_KEY else key[:_KEPT_PREFIX] + blake3(key).digest()


def _split_value(stored_key: bytes, value: bytes) -> tuple[bytes, bytes]:
    if len(stored_key) < _LONG_KEY:
        return stored_key, value
    (length,) = struct.unpack_from("<I", value)
    return value[4 : 4 + length], value[4 + length :]
