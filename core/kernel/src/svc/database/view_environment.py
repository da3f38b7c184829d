"""Where the data of a view are: their environment, opened when first used, and anew when they are damaged."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory

import lmdb

from svc.database.view_damage import note_damage
from svc.database.view_files import FILES_KEY, begin_files
from svc.database.view_marks import DATABASES, MAP_SIZE
from svc.errors import DamagedView, DatabaseClosed, InsufficientStorage, ReadOnly, ServiceUnavailable
from svc.executor import Executor
from svc.findings import describe_failure
from svc.log.creation import FULL
from svc.native_locks import held_across_waits, native_lock
from svc.objects.environments import (
    SharedEnvironment,
    close_environment,
    discard_environment,
    is_damage,
    is_full,
    open_environment,
)

__all__ = ["ViewEnvironment"]

_MOST_RENEWALS = 3
_RENEWALS_SECONDS = 3600.0
"""A view whose data are found damaged more often than that is left alone: the disk fails, or the program."""


class ViewEnvironment:
    """The environment of one view in one opening of a database."""

    def __init__(self, name: str, directory: FilePath, executor: Executor, *, read_only: bool) -> None:
        self._name = name
        self._directory = directory
        self._executor = executor
        self._read_only = read_only
        self._shared: SharedEnvironment | None = None
        self._retired: list[SharedEnvironment] = []
        self._renewals: list[float] = []
        self._temporary: TemporaryDirectory[str] | None = None
        self._files = directory / "files"
        # The last name of the view's directory, where it was made, and its path: every read needs it.
        self._known_files: tuple[bytes, FilePath, FilePath] | None = None
        self._mutex = native_lock()
        self._closed = False

    def open(self) -> SharedEnvironment:
        """Returns the environment; another one than before when that was put away."""
        shared = self._shared
        if shared is None or not shared.is_there:
            with held_across_waits(self._mutex):
                if self._closed:
                    raise DatabaseClosed("The database is closed.")
                if self._shared is not None and not self._shared.is_there:
                    # Another process found damage and began anew, or somebody has removed it.
                    self._retire()
                shared = self._shared
                if shared is None:
                    shared = self._shared = self._open_shared()
        return shared

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Puts the data away when they turn out to be damaged in a block, so that they begin anew.

        Raises ``DamagedView`` then, ``ServiceUnavailable`` when they were damaged again and again.
        """
        shared: SharedEnvironment | None = None
        try:
            shared = self.open()
            yield
        except (DamagedView, lmdb.Error) as error:
            if isinstance(error, lmdb.Error) and not is_damage(error):
                raise
            if "view" not in getattr(error, "details", ()):
                self._renew(shared, error)
            raise DamagedView(
                f"The data of the view {self._name} are damaged and are made anew; ask again in a while.",
                view=self._name,
                retry_after=1,
            ) from error

    @contextmanager
    def writing(self, shared: SharedEnvironment) -> Iterator[lmdb.Transaction[bytes]]:
        """Gives a transaction that writes."""
        try:
            with shared.begin(write=True) as transaction:
                yield transaction
        except (lmdb.Error, OSError) as error:
            if not (is_full(error) if isinstance(error, lmdb.Error) else error.errno in FULL):
                raise
            raise InsufficientStorage(
                f"The disk is full or fails: the view {self._name} could not be written."
            ) from error

    def begin_files(self, transaction: lmdb.Transaction[bytes]) -> None:
        """Gives the view an empty directory, of another name than any before."""
        transaction.put(FILES_KEY, begin_files(self._files))

    def files_of(self, transaction: lmdb.Transaction[bytes]) -> FilePath | None:
        """The view's directory that the data name; None when they name none."""
        name = transaction.get(FILES_KEY)
        if name is None:
            return None
        parent, known = self._files, self._known_files
        if known is None or known[0] != name or known[1] is not parent:
            known = self._known_files = name, parent, parent / name.decode("ascii")
        return known[2]

    def has_files(self, transaction: lmdb.Transaction[bytes]) -> bool:
        """Whether the directory that the data name is there."""
        directory = self.files_of(transaction)
        return directory is not None and os.path.isdir(directory)

    def close(self) -> None:
        """Closes the data; nothing opens them again."""
        with held_across_waits(self._mutex):
            self._closed = True
            self._retire()
            retired, self._retired = self._retired, []
            for shared in retired:
                close_environment(shared)

    def remove(self) -> None:
        """Removes data that were this opening's own, after ``close``."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def _renew(self, damaged: SharedEnvironment | None, error: BaseException) -> None:
        """Moves damaged data away, so that the next opening begins anew; a few times an hour only."""
        with held_across_waits(self._mutex):
            if self._closed or damaged is not self._shared:
                return
            now = time.monotonic()
            self._renewals = [at for at in self._renewals if now - at < _RENEWALS_SECONDS]
            if len(self._renewals) >= _MOST_RENEWALS:
                raise ServiceUnavailable(
                    f"The data of the view {self._name} are damaged again and again: look after the disk, "
                    "then start the server anew.",
                    view=self._name,
                ) from error
            self._renewals.append(now)
            discard_environment(self._directory, damaged)
            note_damage(self._directory, self._name, describe_failure(error))
            self._retire()

    def _retire(self) -> None:
        """Stops using the environment; others may still read it, so the database closes it."""
        if self._shared is not None:
            self._retired.append(self._shared)
        self._shared = None

    def _open_shared(self) -> SharedEnvironment:
        try:
            return open_environment(self._directory, MAP_SIZE, DATABASES, executor=self._executor)
        except ReadOnly:
            if not self._read_only:
                raise
        # A database on a medium that cannot be written: its views are this opening's own.
        self._temporary = TemporaryDirectory(prefix="svc-view-")
        self._files = FilePath(self._temporary.name) / "files"
        return open_environment(FilePath(self._temporary.name), MAP_SIZE, DATABASES)
