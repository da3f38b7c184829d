"""Files that wait to be read: child processes parse some of them at a time, outside of any transaction."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.errors import SvcError
from svc.plugin import Entry, EntryKind, Hash, Path, Version
from svc_query.indexing import keys
from svc_query.indexing.effective import Resolver, Way
from svc_query.indexing.extraction import Reading, choose, input_of
from svc_query.indexing.flushing import Host
from svc_query.indexing.reading_turns import ReadingTurns, SlowKinds
from svc_query.indexing.reconciling import Reconciler
from svc_query.indexing.table import Table

if TYPE_CHECKING:
    from svc_query.parsing import ParserPool

__all__ = ["WaitingFiles"]

_MOST_ATTEMPTS = 3
_MOST_LATE = 1_000
_WAIT_SECONDS = 0.02


class _Running(NamedTuple):
    path: Path
    number: int
    entry: Entry
    reading: Reading
    future: Future[dict[Way, Any]]
    owner: bytes
    is_slow: bool


class WaitingFiles:
    """Takes files out of the queue and brings in what was found in them.

    What runs is known to this process alone; the rows of the queue stay until the outcome is stored.
    """

    def __init__(self) -> None:
        self._running: dict[bytes, _Running] = {}
        self._attempts: dict[bytes, int] = {}
        self._turns = ReadingTurns()
        # As it was when no file was found that could be begun.
        self._fruitless: tuple[object, ...] = ()
        self._slow = SlowKinds()
        self._late: OrderedDict[tuple[Hash, str], dict[Way, Any]] = OrderedDict()
        self._pool: ParserPool | None = None
        self._threads: ThreadPoolExecutor | None = None

    def step(self, host: Host, at: Version) -> bool:
        """Brings in what was found, and begins more; returns whether files are being read."""
        reconciler = Reconciler(host.table, host.extensions, at)
        for key, running in list(self._running.items()):
            if running.future.done():
                del self._running[key]
                self._take(host, key, running, reconciler)
        self._begin_some(host, at)
        return bool(self._running)

    def wait(self) -> None:
        """Waits for a moment, or until a file has been read."""
        running = list(self._running.values())  # another thread may have the next transaction already
        wait([one.future for one in running], timeout=_WAIT_SECONDS, return_when=FIRST_COMPLETED)

    def _take(self, host: Host, key: bytes, running: _Running, reconciler: Reconciler) -> None:
        results = running.future.result()
        if any(result.transient for result in results.values()):
            attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
            if attempts < _MOST_ATTEMPTS:
                return
        self._attempts.pop(key, None)
        self._learn(running, results)
        reconciler.parsed(running.path, running.number, running.entry, results, running.reading)

    def _learn(self, running: _Running, results: dict[Way, Any]) -> None:
        """Remembers which contents and kinds of files took longer than they may."""
        label = running.reading.label
        if not any(result.late for result in results.values()):
            self._slow.forget(running.owner, running.path, label)
            return
        self._slow.note(running.owner, running.path, label)
        self._late[running.entry.hash, label] = results
        if len(self._late) > _MOST_LATE:
            self._late.popitem(last=False)

    def _begin_some(self, host: Host, at: Version) -> None:
        free = host.extensions.configuration.parsers_at_once * 2 - len(self._running)
        state = host.table.state
        present = (state.epoch, state.change, *self._running)
        if free <= 0 or present == self._fruitless:
            return
        self._fruitless = ()
        resolver = Resolver(host.extensions.configurations, at)
        storage, table = host.table.storage, host.table
        while free > 0:
            is_slow_one_at_work = any(running.is_slow for running in self._running.values())

            def may_take(path: Path, waits: bool = is_slow_one_at_work) -> bool:
                return not waits or not self._slow.has(*_kind_of(table, path))

            key = self._turns.next(storage, self._running, may_take)
            if key is None:
                self._fruitless = (state.epoch, state.change, *self._running)
                return
            number = table.waiting_number(key)
            running = self._prepare(host, at, resolver, key, number)
            if running is None:
                # What it waited for is gone; whoever brought it to that has dealt with the rest.
                table.stop_waiting(key)
                table.change()
            else:
                self._running[key] = running
                free -= 1

    def _prepare(
        self, host: Host, at: Version, resolver: Resolver, key: bytes, number: int
    ) -> _Running | None:
        path = keys.path_of_key(key)
        row = host.table.row(number)
        entry = at.get(path)
        if row is None or entry is None or entry.kind is not EntryKind.FILE or entry.hash != row.hash:
            return None
        effective = resolver.of(path)
        if not effective.plans:
            return None
        reading = choose(effective, entry, path[-1], host.extensions.parsers)
        if reading.label != row.parser:
            return None
        threads = self._threads
        if threads is None:
            from svc_query.parsing import ParserPool

            self._pool = ParserPool(host.extensions.configuration)
            threads = self._threads = ThreadPoolExecutor(
                host.extensions.configuration.parsers_at_once, "svc-query-parse"
            )
        assert self._pool is not None, "it is made with the threads"
        known = self._late.get((entry.hash, reading.label))
        if known is not None:  # a copy: it would take as long again
            future: Future[dict[Way, Any]] = Future()
            future.set_result(known)
        else:
            future = threads.submit(_parse, self._pool, at, path, entry, reading)
        owner = host.table.waiting_owner(key)
        is_slow = known is None and self._slow.has(owner, path, reading.label)
        return _Running(path, number, entry, reading, future, owner, is_slow)

    def forget(self) -> None:
        """Forgets what is running; it is begun anew, here or elsewhere."""
        self._running = {}

    @property
    def children(self) -> tuple[int, ...]:
        """Process ids of the child processes."""
        return () if self._pool is None else self._pool.children

    def trim(self) -> None:
        """Ends child processes that have been idle for long; called when there is nothing to do."""
        if self._pool is not None and not self._running:
            self._pool.trim()

    def close(self) -> None:
        """Ends the child processes; those without work end by themselves after a while."""
        pool, self._pool = self._pool, None
        threads, self._threads = self._threads, None
        self.forget()
        if pool is not None:
            pool.close()
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)


def _kind_of(table: Table, path: Path) -> tuple[bytes, Path, str]:
    key = keys.key_of_path(path)
    row = table.row(table.waiting_number(key))
    return table.waiting_owner(key), path, "" if row is None else row.parser


def _parse(pool: ParserPool, version: Version, path: Path, entry: Entry, reading: Reading) -> dict[Way, Any]:
    from svc_query.parsing import ParseResult

    results: dict[Way, Any] = {}
    for way, parser in reading.parsers.items():
        if parser is None:
            continue
        try:
            results[way] = pool.parse(parser, version.read(entry), input_of(path, entry, way))
        except (SvcError, OSError) as error:
            results[way] = ParseResult(None, f"The file cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - one file costs itself and nothing else
            results[way] = ParseResult(None, f"It could not be parsed: {type(error).__name__}.")
    return results
