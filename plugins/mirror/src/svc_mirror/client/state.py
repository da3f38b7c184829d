"""What a mirror knows between two runs: ``.svc-mirror/state.sqlite`` in the directory.

What the server told and the token that stands for it change in one transaction; so do what both sides have
and the file that was put in its place before. A run that is killed anywhere leaves what the next one needs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from svc.errors import Conflict, CorruptRecord, InsufficientStorage
from svc_mirror.client.values import Base, Kind, Remote

__all__ = ["State"]

FORMAT = "1"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS remote (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, kind INTEGER NOT NULL, hash TEXT NOT NULL,
    size INTEGER NOT NULL, target TEXT NOT NULL, updated_ms INTEGER NOT NULL, is_readable INTEGER NOT NULL,
    chunks BLOB, generation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS remote_parent ON remote (parent);
CREATE TABLE IF NOT EXISTS base (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, kind INTEGER NOT NULL, value TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unseen (path TEXT PRIMARY KEY, is_told INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS base_parent ON base (parent);
CREATE INDEX IF NOT EXISTS base_value ON base (value);
CREATE TABLE IF NOT EXISTS chunks (
    path TEXT NOT NULL, place INTEGER NOT NULL, hash BLOB NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (path, place)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunks_hash ON chunks (hash);
"""
_REMOTE = "SELECT kind, hash, size, target, updated_ms, is_readable, chunks, path FROM remote WHERE "
_BASE = "SELECT kind, value, size, mtime_ns, ctime_ns, inode, path FROM base WHERE "
_LARGEST = (1 << 63) - 1


class State:
    """The state of one mirror; one process at a time has it open.

    Args:
        location: the file; it is made where it is missing.
        identity: what the mirror is of, as the file says it from its first run on.

    Raises:
        Conflict: the directory is a mirror of something else.
        CorruptRecord: the file is damaged, or of a newer svc.
    """

    def __init__(self, location: str, identity: Mapping[str, str]) -> None:
        try:
            self._database = sqlite3.connect(location, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(_SCHEMA)
            self._identify(identity)
        except sqlite3.DatabaseError as error:
            raise CorruptRecord(
                f"{os.path.basename(location)} is damaged ({error}). Move the directory .svc-mirror away: "
                "the next run compares all files by their contents.",
                offset=0,
            ) from error

    def _identify(self, identity: Mapping[str, str]) -> None:
        with self.transaction():
            for name, value in {"format": FORMAT, **identity}.items():
                known = self.fact(name)
                if known is None:
                    self.set_fact(name, value)
                elif known != value and name == "format":
                    raise CorruptRecord("The state of the mirror is of another version of svc.", offset=0)
                elif known != value:
                    raise Conflict(
                        f"This directory mirrors another {name}: {known}. Give another directory, or move "
                        ".svc-mirror away.",
                        field=name,
                    )

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is changed inside comes whole or not at all, and outlasts a power cut."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._undo()
            if "full" not in str(error):
                raise
            raise InsufficientStorage("The disk of the directory is full.") from error
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        # SQLite has undone it itself where the disk is full.
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def fact(self, name: str) -> str | None:
        """Returns one of the facts."""
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_fact(self, name: str, value: str | None) -> None:
        """Sets or forgets one of the facts."""
        if value is None:
            self._database.execute("DELETE FROM facts WHERE name = ?", (name,))
        else:
            self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def remote(self, path: str) -> Remote | None:
        """Returns what the server has at a path."""
        row = self._database.execute(_REMOTE + "path = ?", (path,)).fetchone()
        return None if row is None else _remote(row)

    def base(self, path: str) -> Base | None:
        """Returns what both sides had at a path."""
        row = self._database.execute(_BASE + "path = ?", (path,)).fetchone()
        return None if row is None else _base(row)

    def remote_children(self, directory: str) -> dict[str, Remote]:
        """Returns what the server has in a directory, by path."""
        rows = self._database.execute(_REMOTE + "parent = ?", (directory,))
        return {row[-1]: _remote(row) for row in rows}

    def base_children(self, directory: str) -> dict[str, Base]:
        """Returns what both sides had in a directory, by path."""
        rows = self._database.execute(_BASE + "parent = ?", (directory,))
        return {row[-1]: _base(row) for row in rows}

    def count_files(self) -> int:
        """How many files and links both sides have."""
        query = "SELECT count(*) FROM base WHERE kind != ?"
        return int(self._database.execute(query, (int(Kind.DIRECTORY),)).fetchone()[0])

    def set_remote(self, path: str, entry: Remote | None, generation: int | None = None) -> None:
        """Notes what the server has at a path; ``generation``: of the telling, the present one without."""
        if entry is None:
            self._database.execute("DELETE FROM remote WHERE path = ?", (path,))
            return
        if self.is_unseen(path):
            self._see(path, entry)
        self._database.execute(
            "INSERT OR REPLACE INTO remote VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                path,
                _parent(path),
                int(entry.kind),
                entry.hash,
                entry.size,
                entry.target,
                entry.updated_ms,
                entry.is_readable,
                entry.chunks,
                self.generation if generation is None else generation,
            ),
        )

    def _see(self, path: str, entry: Remote) -> None:
        """Takes in what the server tells of a path where something was stored that it had not told yet."""
        base, before = self.base(path), self.remote(path)
        if base is not None and base.standing == entry.standing:
            self._database.execute("DELETE FROM unseen WHERE path = ?", (path,))
        elif before is None or before.standing != entry.standing:
            # Nobody knows whether it came behind what was stored: both are kept.
            self.set_base(path, None)

    def is_unseen(self, path: str) -> bool:
        """Whether the base of a path was stored, and the server has not told of it since."""
        query = "SELECT 1 FROM unseen WHERE path = ?"
        return self._database.execute(query, (path,)).fetchone() is not None

    def is_hidden(self, path: str) -> bool:
        """Whether it was said of an unseen path that the server does not show it."""
        query = "SELECT 1 FROM unseen WHERE path = ? AND is_told"
        return self._database.execute(query, (path,)).fetchone() is not None

    def has_unseen(self) -> bool:
        """Whether there are unseen paths of which nothing was said yet."""
        return self._database.execute("SELECT 1 FROM unseen WHERE NOT is_told LIMIT 1").fetchone() is not None

    def note_unseen(self, path: str, *, is_told: bool = False) -> None:
        """Notes that the server has not told of the base of a path; ``is_told``: that this was said."""
        self._database.execute("INSERT OR REPLACE INTO unseen VALUES (?, ?)", (path, is_told))

    def set_base(self, path: str, base: Base | None) -> None:
        """Notes what both sides have at a path; it counts as seen, its chunks' places are forgotten."""
        self._database.execute("DELETE FROM unseen WHERE path = ?", (path,))
        self._database.execute("DELETE FROM chunks WHERE path = ?", (path,))
        if base is None:
            self._database.execute("DELETE FROM base WHERE path = ?", (path,))
            return
        self._database.execute(
            "INSERT OR REPLACE INTO base VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                path,
                _parent(path),
                int(base.kind),
                base.value,
                base.size,
                # A time that does not fit never equals that of the file: it is read each time.
                max(-_LARGEST, min(base.mtime_ns, _LARGEST)),
                max(-_LARGEST, min(base.ctime_ns, _LARGEST)),
                base.inode & _LARGEST,
            ),
        )

    def move_base(self, path: str, target: str, base: Base) -> None:
        """Notes that what both sides have at a path is at another one, with its chunks."""
        self.set_base(target, base)
        self._database.execute("UPDATE chunks SET path = ? WHERE path = ?", (target, path))
        self.set_base(path, None)

    @property
    def generation(self) -> int:
        """The number of the present telling of everything."""
        return int(self.fact("generation") or 0)

    def forget_older(self, generation: int) -> None:
        """Forgets what the server told before, and not in this telling of everything."""
        self._database.execute("DELETE FROM remote WHERE generation < ?", (generation,))

    def forget(self) -> None:
        """Forgets what the server has, what both sides had, and the token; in one transaction."""
        with self.transaction():
            for table in ("base", "chunks", "remote", "unseen"):
                self._database.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
            self.set_fact("token", None)

    def note_chunks(self, path: str, chunks: Iterable[tuple[bytes, int]]) -> None:
        """Notes where the chunks of a large file of this machine lie, in order."""
        rows, place = [], 0
        for hash, size in chunks:
            rows.append((path, place, hash, size))
            place += size
        self._database.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?)", rows)

    def places_of_chunk(self, hash: bytes) -> list[tuple[str, int, int]]:
        """Where a chunk may lie on this machine: path, offset, size; a few places."""
        query = "SELECT path, place, size FROM chunks WHERE hash = ? LIMIT 3"
        return list(self._database.execute(query, (hash,)))

    def paths_of_content(self, value: str) -> list[str]:
        """Paths of files of this machine that may have a content; a few."""
        query = "SELECT path FROM base WHERE value = ? AND kind = ? LIMIT 3"
        return [row[0] for row in self._database.execute(query, (value, int(Kind.FILE)))]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _remote(row: tuple[int, str, int, str, int, int, bytes | None, str]) -> Remote:
    kind, hash, size, target, updated_ms, is_readable, chunks, _ = row
    return Remote(Kind(kind), hash, size, target, updated_ms, bool(is_readable), chunks)


def _base(row: tuple[int, str, int, int, int, int, str]) -> Base:
    kind, value, size, mtime_ns, ctime_ns, inode, _ = row
    return Base(Kind(kind), value, size, mtime_ns, ctime_ns, inode)
