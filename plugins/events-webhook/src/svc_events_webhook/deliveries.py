"""The tries of the last days, to be looked at: a SQLite file of the state directory.

What it holds may be lost: it says what was, and nothing depends on it. One process writes, all read.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from svc.errors import InvalidInput
from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.models import Deliveries, Delivery

__all__ = ["DeliveryLog"]

_TABLE = """
CREATE TABLE IF NOT EXISTS deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT, webhook TEXT NOT NULL, event_id TEXT NOT NULL,
    event_type TEXT NOT NULL, at INTEGER NOT NULL, took_ms INTEGER NOT NULL, status INTEGER, error TEXT,
    answer BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS by_webhook ON deliveries (webhook, number);
"""
_PRUNE_EVERY = 500
_DAY_MS = 86_400_000


class DeliveryLog:
    """The tries of one database. Used by any thread.

    Args:
        state_directory: the state directory of the database.
        settings: how much is kept.
    """

    def __init__(self, state_directory: Path, settings: WebhookConfiguration) -> None:
        self._path = state_directory / "webhooks" / "deliveries.sqlite"
        self._settings = settings
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._added = 0

    def add(self, webhook_id: str, delivery: Delivery, answer: bytes) -> None:
        """Notes a try; what can't be written is not noted."""
        with self._lock, contextlib.suppress(OSError, sqlite3.Error):
            if not self._path.exists():
                self._close()
            try:
                self._insert(webhook_id, delivery, answer)
            except sqlite3.OperationalError:
                raise  # Locked by another, or the disk is full.
            except sqlite3.DatabaseError:
                # Damaged, or of another form: it begins anew.
                self._close()
                self._path.unlink(missing_ok=True)
                self._insert(webhook_id, delivery, answer)

    def page(self, webhook_id: str, limit: int, after: str | None) -> Deliveries:
        """Returns tries of a webhook, the newest first."""
        if after is not None and not (after.isascii() and after.isdigit() and len(after) < 19):
            raise InvalidInput("The cursor is none that this list gave.", field="after")
        rows = self._read(webhook_id, limit, 1 << 62 if after is None else int(after))
        found = [
            Delivery(
                event_id=event_id,
                event_type=event_type,
                at=at,
                took_ms=took_ms,
                status=status,
                error=error,
                answer=bytes(answer).decode("utf-8", "replace"),
            )
            for _, event_id, event_type, at, took_ms, status, error, answer in rows[:limit]
        ]
        more = len(rows) > limit
        return Deliveries(
            deliveries=found, has_more=more, next_cursor=str(rows[limit - 1][0]) if more else None
        )

    def forget(self, webhook_id: str) -> None:
        """Takes out the tries of a webhook."""
        with self._lock, contextlib.suppress(OSError, sqlite3.Error):
            self._opened().execute("DELETE FROM deliveries WHERE webhook = ?", (webhook_id,))

    def close(self) -> None:
        """Ends the use of the file."""
        with self._lock:
            self._close()

    def _insert(self, webhook_id: str, delivery: Delivery, answer: bytes) -> None:
        connection = self._opened()
        connection.execute(
            "INSERT INTO deliveries (webhook, event_id, event_type, at, took_ms, status, error, answer)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                webhook_id,
                delivery.event_id,
                delivery.event_type,
                delivery.at,
                delivery.took_ms,
                delivery.status,
                delivery.error,
                answer,
            ),
        )
        self._added += 1
        if self._added % _PRUNE_EVERY == 1:
            self._prune(connection)

    def _prune(self, connection: sqlite3.Connection) -> None:
        oldest = time.time_ns() // 1_000_000 - self._settings.deliveries_days * _DAY_MS
        connection.execute("DELETE FROM deliveries WHERE at < ?", (oldest,))
        connection.execute(
            "DELETE FROM deliveries WHERE number IN (SELECT number FROM (SELECT number, row_number() OVER"
            " (PARTITION BY webhook ORDER BY number DESC) AS place FROM deliveries) WHERE place > ?)",
            (self._settings.deliveries_kept,),
        )

    def _read(
        self, webhook_id: str, limit: int, before: int
    ) -> list[tuple[int, str, str, int, int, int | None, str | None, bytes]]:
        if not self._path.exists():
            return []
        with contextlib.suppress(sqlite3.Error), self._reading() as connection:
            return connection.execute(
                "SELECT number, event_id, event_type, at, took_ms, status, error, answer FROM deliveries"
                " WHERE webhook = ? AND number < ? ORDER BY number DESC LIMIT ?",
                (webhook_id, before, limit + 1),
            ).fetchall()
        return []

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=1.0)
        try:
            yield connection
        finally:
            connection.close()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=1.0, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = OFF")
                connection.executescript(_TABLE)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
