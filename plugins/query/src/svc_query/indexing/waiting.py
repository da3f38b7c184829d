"""Files that wait to be read: child processes parse some of them at a time, outside of any transaction."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.errors import SvcError
from svc.plugin import Entry, EntryKind, Path, Version
from svc_query.api import ParserInput
from svc_query.indexing import keys
from svc_query.indexing.effective import Resolver
from svc_query.indexing.extraction import Reading, choose
from svc_query.indexing.flushing import Host
from svc_query.indexing.reconciling import Reconciler
from svc_query.indexing.table import Table

if TYPE_CHECKING:
    from svc_query.parsing import ParserPool

__all__ = ["WaitingFiles"]

_MOST_ATTEMPTS = 3
_WAIT_SECONDS = 0.005


class _Running(NamedTuple):
    path: Path
    number: int
    entry: Entry
    reading: Reading
    future: Future[dict[str | None, Any]]


class WaitingFiles:
    """Takes files out of the queue and brings in what was found in them.

    What runs is known to this process alone; the rows of the queue stay until the outcome is stored.
    """

    def __init__(self) -> None:
        self._running: dict[bytes, _Running] = {}
        self._attempts: dict[bytes, int] = {}
        self._after: bytes | None = None
        self._pool: ParserPool | None = None
        self._threads: ThreadPoolExecutor | None = None

    def step(self, host: Host, at: Version, *, waits: bool) -> bool:
        """Does a step; returns whether files are left."""
        self._begin_some(host, at)
        if not self._running:
            return False
        futures = [running.future for running in self._running.values()]
        wait(futures, timeout=_WAIT_SECONDS if waits else 0, return_when=FIRST_COMPLETED)
        reconciler = Reconciler(host.table, host.extensions, at)
        for key, running in list(self._running.items()):
            if running.future.done():
                del self._running[key]
                self._take(host, key, running, reconciler)
        self._begin_some(host, at)
        return bool(self._running)

    def _take(self, host: Host, key: bytes, running: _Running, reconciler: Reconciler) -> None:
        results = running.future.result()
        if any(result.transient for result in results.values()):
            attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
            if attempts < _MOST_ATTEMPTS:
                return
        self._attempts.pop(key, None)
        reconciler.parsed(running.path, running.number, running.entry, results, running.reading)

    def _begin_some(self, host: Host, at: Version) -> None:
        free = host.extensions.configuration.parsers_at_once * 2 - len(self._running)
        if free <= 0:
            return
        resolver = Resolver(host.extensions.configurations, at)
        found = self._next(host.table, free)
        for key in found:
            number = host.table.waiting_number(key)
            running = self._prepare(host, at, resolver, key, number)
            if running is None:
                # What it waited for is gone; whoever brought it to that has dealt with the rest.
                host.table.stop_waiting(key)
                host.table.change()
            else:
                self._running[key] = running

    def _next(self, table: Table, most: int) -> list[bytes]:
        """Keys of files in the queue that are not running, behind those that were taken last."""
        found: list[bytes] = []
        for start in (self._after, None):
            after = None if start is None else keys.WAITING + start
            for stored, _ in table.storage.scan(keys.WAITING, after):
                key = stored[1:]
                if key not in self._running and key not in found:
                    found.append(key)
                    if len(found) >= most:
                        self._after = key
                        return found
            if start is None:
                break
        self._after = None
        return found

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
        future = threads.submit(_parse, self._pool, at, path, entry, reading)
        return _Running(path, number, entry, reading, future)

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


def _parse(
    pool: ParserPool, version: Version, path: Path, entry: Entry, reading: Reading
) -> dict[str | None, Any]:
    from svc_query.parsing import ParseResult

    source = ParserInput(path[-1], entry.content_type, entry.size)
    results: dict[str | None, Any] = {}
    for wanted, parser in reading.parsers.items():
        if parser is None:
            continue
        try:
            results[wanted] = pool.parse(parser, version.read(entry), source)
        except (SvcError, OSError) as error:
            results[wanted] = ParseResult(None, f"The file cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - one file costs itself and nothing else
            results[wanted] = ParseResult(None, f"It could not be parsed: {type(error).__name__}.")
    return results
