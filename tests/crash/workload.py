"""Random work on an open database, each writer with a journal; and what a crash may have left of it.

A seed flows in, transactions flow into the database: puts, replacements, removals and moves, one or
several at once, of small contents and of uploads that are appended ahead of their commit.
"""

from __future__ import annotations

import io
import os
import random
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from crash.journal import Change, Journal, digest
from svc.database import Database
from svc.errors import DatabaseLatched, InsufficientStorage, ServiceUnavailable, VersionCollected
from svc_maintenance.verification import verify

__all__ = ["Writer", "check_database", "check_open_database", "read_directory", "run_writers"]

NAMES = [f"{folder}/{number}" for folder in "ab" for number in range(5)]
UPLOAD = 70_000


class Writer:
    """Makes random changes in its own directory.

    Args:
        database: where.
        name: of its directory, and what its randomness begins with.
        seed: the rest of it.
        tell: called with the writer and ``begin``, ``acknowledge`` or ``refuse``, when the journal is
            about to change in this way; the change under way is given too.
        small: only contents of a few bytes.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        seed: int,
        tell: Callable[[Writer, str, Change], None] | None = None,
        *,
        small: bool = False,
    ) -> None:
        self.database = database
        self.journal = Journal(name)
        self.chance = random.Random(f"{name} {seed}")
        self.small = small
        self._tell = tell

    def step(self) -> bool:
        """Makes one change; returns whether it was acknowledged."""
        puts, removed, moved = self._choose()
        change: dict[str, str | None] = {path: digest(content) for path, content in puts.items()}
        change |= dict.fromkeys(removed)
        for source, destination in moved:
            change |= {source: None, destination: self.journal.acknowledged[source]}
        self._note("begin", change)
        try:
            version = self._commit(puts, removed, moved)
        except InsufficientStorage:
            self._note("refuse", change)
            return False
        except (DatabaseLatched, ServiceUnavailable):
            return False
        self._note("acknowledge", change, version)
        return True

    def _note(self, event: str, change: Change, version: str | None = None) -> None:
        if event == "begin":
            self.journal.begin(change)
        elif event == "acknowledge":
            self.journal.acknowledge(version)
        else:
            self.journal.refuse()
        if self._tell is not None:
            self._tell(self, event, change)

    def _choose(self) -> tuple[dict[str, bytes], list[str], list[tuple[str, str]]]:
        chance, present = self.chance, sorted(self.journal.acknowledged)
        free = [name for name in NAMES if name not in present]
        puts: dict[str, bytes] = {}
        removed: list[str] = []
        moved: list[tuple[str, str]] = []
        touched: set[str] = set()
        for _ in range(chance.choice((1, 1, 2, 4))):
            kind = chance.random()
            candidates = [name for name in present if name not in touched]
            places = [name for name in free if name not in touched]
            if kind < 0.15 and candidates:
                removed.append(chance.choice(candidates))
                touched.add(removed[-1])
            elif kind < 0.3 and candidates and places:
                moved.append((chance.choice(candidates), chance.choice(places)))
                touched |= set(moved[-1])
            else:
                path = chance.choice([name for name in NAMES if name not in touched])
                puts[path] = self._content()
                touched.add(path)
        return puts, removed, moved

    def _content(self) -> bytes:
        chance = self.chance
        unique = b"%016x" % chance.getrandbits(64)
        if self.small:
            return unique
        kind = chance.random()
        if kind < 0.7:
            return unique + chance.randbytes(chance.choice((0, 10, 300, 3000)))
        if kind < 0.85:
            return unique * (UPLOAD // 16)
        return unique + chance.randbytes(UPLOAD + chance.randrange(200_000))

    def _commit(self, puts: dict[str, bytes], removed: list[str], moved: list[tuple[str, str]]) -> str:
        database = self.database
        with database.transaction(actor=self.journal.name) as transaction:
            for path, content in puts.items():
                stored = database.store(io.BytesIO(content)) if len(content) >= UPLOAD else content
                transaction.put(self._path(path), stored)
            for path in removed:
                transaction.delete(self._path(path))
            for source, destination in moved:
                transaction.move(self._path(source), self._path(destination))
        assert transaction.result is not None
        return transaction.result.version.hex()

    def _path(self, name: str) -> tuple[str, ...]:
        return (self.journal.name, *name.split("/"))


def run_writers(writers: Iterable[Writer], steps: int) -> None:
    """Lets every writer make its changes, all at once; a writer ends early when it is not acknowledged."""
    errors: list[BaseException] = []

    def work(writer: Writer) -> None:
        try:
            for _ in range(steps):
                if not writer.step():
                    return
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def read_directory(database: Database, name: str) -> dict[str, str]:
    """Reads every file of a writer's directory at HEAD; returns path to digest."""
    version = database.at()
    if version.get((name,)) is None:
        return {}
    return {
        "/".join(path[1:]): digest(version.read_all(entry))
        for path, entry in version.walk((name,), files_only=True)
    }


def check_database(path: Path, journals: Iterable[Journal]) -> None:
    """Opens what a crash left: everything acknowledged is there, nothing is half done, and it goes on."""
    with Database(path, create=False) as database:
        check_open_database(database, journals)


def check_open_database(database: Database, journals: Iterable[Journal]) -> None:
    """As ``check_database``, for one that is open.

    What a recovery cut and nobody can be sure of is named until somebody has moved it away.
    """
    doubtful = database.opening.saved
    assert [one.code for one in database.findings()] == ["database.cut"] * len(doubtful)
    assert len([one for one in verify(database).damaged if ".cut-" in one.message]) == len(doubtful)
    for saved in doubtful:
        os.unlink(saved.name)
    with database.transaction() as transaction:
        transaction.put(("after the crash",), b"it takes writes")
    for journal in journals:
        journal.check(read_directory(database, journal.name))
        if journal.version is not None:
            with suppress(VersionCollected):
                database.require_version(bytes.fromhex(journal.version))
    assert verify(database).damaged == []
