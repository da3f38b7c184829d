"""Indexing files again, a batch at a time: what the task of that does with the view.

The view keeps itself in step with what is committed, and whoever indexes a file ahead of it, or again, does
so through the same reconciler: nothing is done twice, or otherwise than the view would have done it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from svc.errors import SvcError
from svc.plugin import EntryKind, Path, Version, ViewStorage, is_system_path
from svc_query.indexing import keys
from svc_query.indexing.effective import Resolver
from svc_query.indexing.extraction import choose
from svc_query.indexing.reading import catch_up_and_work
from svc_query.indexing.reconciling import Reconciler, is_same_file
from svc_query.indexing.rows import FailureRow, ReindexRow, decode_row, encode
from svc_query.indexing.table import Table
from svc_query.indexing.view import INDEX_VIEW, view_of

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["Outcome", "Reindex"]

T = TypeVar("T")

_TRANSACTION_SECONDS = 0.2
_POLL_SECONDS = 0.02


class Outcome(NamedTuple):
    """What became of a batch.

    Attributes:
        renewed: how many documents were made anew; the others were in step already.
        mutations: in how many indexes they were taken.
        failures: why files could not be indexed by their content.
        is_whole: False when it was stopped while files still waited for their parsers.
    """

    renewed: int
    mutations: int
    failures: Mapping[Path, str]
    is_whole: bool


class Reindex:
    """The index of one open database, for a task. Its methods block; called in a process of its own.

    Raises NotFound where queries are not in use for it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._view = view_of(database)
        self._reader = database.view(INDEX_VIEW)

    # -- files ---------------------------------------------------------------------------------

    def count(self, path: Path) -> int:
        """Returns how many files stand at and below a path of HEAD."""
        entry = self._database.at().get(path)
        if entry is None or entry.totals is None:
            return int(entry is not None and entry.kind is EntryKind.FILE)
        return entry.totals.files

    def next_files(self, path: Path, after: Path | None, count: int) -> list[Path]:
        """Returns the next files of HEAD at and below a path, in alphabetical order of their paths.

        Nothing needs to stand at ``path``.
        """
        version = self._database.at()
        entry = version.get(path)
        if entry is not None and entry.kind is EntryKind.FILE:
            return [path] if after is None or after < path else []
        if entry is None and path:
            return []
        files = (here for here, found in version.walk_files(path, after=after) if found is not None)
        return list(islice((here for here in files if not is_system_path(here)), count))

    # -- documents -----------------------------------------------------------------------------

    def numbering(self) -> tuple[str, int]:
        """Returns what names the present numbering, and the number that the next document will have.

        Documents with smaller ones are those that a forced reindex, which begins now, makes anew.
        """
        return self._order(lambda table, _: (table.state.epoch.hex(), table.state.next_number))

    def renew(
        self,
        paths: Sequence[Path],
        *,
        before: tuple[str, int] | None,
        unread: bool,
        should_stop: Callable[[], bool],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Brings files into the index: those that are not in step, and those that failed before.

        Returns when their parsers have read them, here or in another process.

        ``before`` is what ``numbering`` gave: documents of that numbering with smaller numbers are made anew,
        and their files read again. None: what is in step stays. With ``unread`` no file is read: documents
        get new virtual fields, and keep the others. While commits or parsers are waited for, ``should_stop``
        is asked and ``meanwhile`` called.
        """
        head = self._database.head().sequence
        if catch_up_and_work(self._reader, head, should_stop) < head:
            return Outcome(0, 0, {}, is_whole=False)
        stale = deque(self._stale(paths, before, unread, head))
        failures: dict[Path, str] = {}
        renewed = mutations = 0
        while stale:
            done, taken = self._order(
                lambda table, at: self._renew_some(table, at, stale, before, unread, failures)
            )
            renewed += done
            mutations += taken
        is_whole = self._wait_for_parsers(paths, should_stop, meanwhile)
        if not unread:
            failures |= self._reader.read(lambda storage: _failures(storage, paths), minimum=0)
        return Outcome(renewed, mutations, failures, is_whole)

    def _stale(
        self, paths: Sequence[Path], before: tuple[str, int] | None, unread: bool, head: int
    ) -> list[Path]:
        """Which of some files are to be brought into the index; looks without keeping others from writing."""
        version = self._database.at()

        def look(storage: ViewStorage) -> list[Path]:
            table = Table()
            table.begin(storage)
            limit = _limit(table, before)
            resolver = Resolver(self._view.extensions.configurations, version)
            return [path for path in paths if self._is_stale(table, version, resolver, path, limit, unread)]

        return self._reader.read(look, minimum=head)

    def _is_stale(
        self, table: Table, version: Version, resolver: Resolver, path: Path, limit: int, unread: bool
    ) -> bool:
        key = keys.key_of_path(path)
        number = table.number_of(key)
        entry, row = version.get(path), table.row(number)
        if entry is None or row is None or number < limit or not is_same_file(row, entry):
            return True
        effective = resolver.of(path)
        known = table.storage.get(keys.CONFIGURATION_HASH + effective.hash)
        label = ""
        if effective.plans:
            label = choose(effective, entry, path[-1], self._view.extensions.parsers).label
        if known is None or int.from_bytes(known, "big") != row.configuration or row.parser != label:
            return True
        return not unread and bool(_failure(table.storage, key))

    def _renew_some(
        self,
        table: Table,
        at: Version,
        stale: deque[Path],
        before: tuple[str, int] | None,
        unread: bool,
        failures: dict[Path, str],
    ) -> tuple[int, int]:
        reconciler = Reconciler(table, self._view.extensions, at)
        resolver = Resolver(self._view.extensions.configurations, at)
        limit = _limit(table, before)
        renewed = mutations = 0
        until = time.monotonic() + _TRANSACTION_SECONDS
        while stale and time.monotonic() < until:
            path = stale.popleft()
            key, next_number = keys.key_of_path(path), table.state.next_number
            again = limit
            if not unread and _failure(table.storage, key):
                again = next_number  # whatever it failed for may be better now
            try:
                reconciler.path(path, at.get(path), again, reads=not unread, unread=unread)
            except (SvcError, OSError) as error:
                failures[path] = str(error)
                continue
            if table.state.next_number != next_number:
                renewed += 1
                mutations += sum(len(field.types) for field in resolver.of(path).row.fields)
        return renewed, mutations

    def _wait_for_parsers(
        self, paths: Sequence[Path], should_stop: Callable[[], bool], meanwhile: Callable[[], None]
    ) -> bool:
        wanted = [keys.WAITING + keys.key_of_path(path) for path in paths]

        def waits(storage: ViewStorage) -> bool:
            return any(storage.get(key) is not None for key in wanted)

        while self._reader.read(waits, minimum=0):
            if should_stop():
                return False
            meanwhile()
            if not self._reader.work(should_stop=should_stop):
                time.sleep(_POLL_SECONDS)  # another process reads them
        # What is left to do is the view's own work, which another process may go on with.
        self._view.worker.pause()
        return True

    def flush(self, should_stop: Callable[[], bool]) -> None:
        """Writes what is in no file of the indexes yet into them, unless another process is at work.

        What ``renew`` has returned for is stored in any case.
        """
        number = self.numbering()[1]
        self._view.worker.flush_until = number
        while (
            self._reader.read(_flushed, minimum=0) < number
            and not should_stop()
            and self._reader.work(should_stop=should_stop)
        ):
            pass
        self._view.worker.pause()

    # -- what others see -----------------------------------------------------------------------

    def show(self, name: str, path: Path, done: int, total: int, since_ms: int) -> None:
        """Lets answers at, above and below a path say that it is reindexed; repeat it every few seconds."""
        row = ReindexRow("\x01".join(path), total, done, since_ms, time.time_ns() // 1_000_000)
        self._order(lambda table, _: table.storage.put(keys.REINDEX + name.encode(), encode(row)))

    def hide(self, name: str) -> None:
        """Says that it has come to its end."""
        self._order(lambda table, _: table.storage.delete(keys.REINDEX + name.encode()))

    def close(self) -> None:
        """Lets other processes do the view's work."""
        self._view.worker.flush_until = 0
        self._view.release()

    # -- configurations that changed -----------------------------------------------------------

    def configured(self) -> dict[Path, int]:
        """Returns directories whose configuration has changed, with the number of the commit."""
        return self._reader.read(
            lambda storage: {
                keys.path_of_key(key[1:]): int.from_bytes(value, "big")
                for key, value in storage.scan(keys.CONFIGURED)
            },
            minimum=0,
        )

    def forget_configured(self, changed: Mapping[Path, int]) -> None:
        """Forgets what ``configured`` gave, but for what has changed again since."""

        def forget(table: Table, _: Version) -> None:
            for path, sequence in changed.items():
                key = keys.CONFIGURED + keys.key_of_path(path)
                if table.storage.get(key) == sequence.to_bytes(8, "big"):
                    table.storage.delete(key)

        self._order(forget)

    def reads_files(self, directory: Path) -> bool:
        """Whether the configuration of a directory of HEAD names a field of what is in files.

        One that is gone, or is not valid, may let that of another directory decide: then this is true.
        """
        found = self._view.extensions.configurations.read(self._database.at(), directory)
        if found is None or found[1].configuration is None:
            return True
        return any(not entry.is_virtual for entry in found[1].configuration.entries.values())

    def _order(self, work: Callable[[Table, Version], T]) -> T:
        results: list[T] = []

        def carry_out(table: Table, at: Version) -> None:
            results.append(work(table, at))

        self._view.order(carry_out)
        try:
            while not results:
                self._reader.work(should_stop=lambda: True)
        finally:
            self._view.take_back(carry_out)
        return results[0]


def _limit(table: Table, before: tuple[str, int] | None) -> int:
    """The number below which documents are made anew; 0 where a new numbering has made all of them anew."""
    if before is None or before[0] != table.state.epoch.hex():
        return 0
    return before[1]


def _flushed(storage: ViewStorage) -> int:
    table = Table()
    table.begin(storage)
    return table.state.flushed if storage.get(keys.STATE) is not None else 1 << 32


def _failure(storage: ViewStorage, key: bytes) -> str:
    value = storage.get(keys.FAILURE + key)
    if value is None:
        return ""
    row: FailureRow = decode_row(FailureRow, value)
    return row.message


def _failures(storage: ViewStorage, paths: Sequence[Path]) -> dict[Path, str]:
    found = ((path, _failure(storage, keys.key_of_path(path))) for path in paths)
    return {path: message for path, message in found if message}
