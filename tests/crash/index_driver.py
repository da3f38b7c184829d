"""A process whose writes to LMDB fail while threads read the key index and a view; runs under ``fiu-run -x``.

``fiu-run -x python -m crash.index_driver DATABASE TIMES``: ends with 0 when every environment was given up
and opened anew so many times, and every read meanwhile gave what was written.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

from svc.database import Commit, Database, Version, View, ViewReader, ViewStorage
from svc.errors import InsufficientStorage, ServiceUnavailable

CALL = b"posix/io/rw/pwrite"
SECONDS = 300


class Names(View):
    """A view of the names that were ever put, and how many there are."""

    name = "test.names"
    format = 1

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        for transaction in commit.transactions:
            for change in transaction.changes:
                storage.put("/".join(change.path).encode(), b"%d" % commit.sequence)


class GivenUp(logging.Handler):
    """Counts how often each environment was opened anew."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if "is opened anew" in message:
            self.counts["view" if "/views/" in message else "index"] += 1


class Work:
    """Threads that do something again and again, until one of them fails or all are stopped."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def start(self, step: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._repeat, args=(step,))
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _repeat(self, step: Callable[[], None]) -> None:
        try:
            while not self.stop.is_set():
                step()
        except BaseException as error:
            self.errors.append(error)
            self.stop.set()


def fail_writes(fiu: ctypes.CDLL, probability: float) -> None:
    """Lets that part of LMDB's writes fail from here on."""
    if probability:
        fiu.fiu_enable_random(CALL, 1, ctypes.c_void_p(errno.EIO), 0, ctypes.c_float(probability))
    else:
        fiu.fiu_disable(CALL)


def check(database: Database, acknowledged: dict[str, bytes]) -> None:
    """Every file that was acknowledged reads back."""
    for name, content in list(acknowledged.items()):
        version = database.at()
        entry = version.get((name,))
        assert entry is not None, name
        assert version.read_all(entry) == content
        database.objects.cache.clear()


def check_view(reader: ViewReader) -> None:
    """What the view holds is in order, and a reader sees one state of it."""

    def look(storage: ViewStorage) -> None:
        names = [key for key, _ in storage.scan()]
        assert names == sorted(names)
        assert all(storage.get(name) is not None for name in names)

    reader.read(look, minimum=0)


def main(path: str, times: str) -> None:
    """Works until both the index and the view were opened anew ``times`` times."""
    fiu = ctypes.CDLL("libfiu.so.0")
    given_up = GivenUp()
    logging.getLogger("svc").addHandler(given_up)
    acknowledged: dict[str, bytes] = {}
    with Database(path) as database:
        reader = database.register_view(Names())
        write(database, reader, acknowledged, 0)
        work = Work()
        for _ in range(3):
            work.start(lambda: check(database, acknowledged))
            work.start(lambda: check_view(reader))
        deadline = time.monotonic() + SECONDS
        fail_writes(fiu, 0.2)
        number = 0
        while min(given_up.counts["index"], given_up.counts["view"]) < int(times) and not work.errors:
            number += 1
            assert time.monotonic() < deadline, given_up.counts
            write(database, reader, acknowledged, number)
        fail_writes(fiu, 0)
        work.join()
        write(database, reader, acknowledged, number + 1)
        check(database, acknowledged)
        names = reader.read(lambda storage: {key.decode() for key, _ in storage.scan()})
        assert set(acknowledged) <= names


def write(database: Database, reader: ViewReader, acknowledged: dict[str, bytes], number: int) -> None:
    """Puts a few files and lets the view follow; both may be refused."""
    name, content = f"{number % 50}-{number}", b"%d" % number * 200
    try:
        with database.transaction() as transaction:
            transaction.put((name,), content)
        acknowledged[name] = content
        if len(acknowledged) > 40:
            del acknowledged[next(iter(acknowledged))]
    except (InsufficientStorage, ServiceUnavailable):
        pass
    with contextlib.suppress(InsufficientStorage):
        reader.catch_up()


if __name__ == "__main__":
    main(*sys.argv[1:])
