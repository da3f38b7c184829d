"""The data of one view: ordered byte keys and values in LMDB, within one transaction."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path as FilePath
from zlib import crc32

import lmdb
from blake3 import blake3

from svc.errors import DamagedView

__all__ = ["ViewStorage"]

_LONG_KEY = 480
_KEPT_PREFIX = _LONG_KEY - 32
_MOST_WAITING_BYTES = 8 * 1024 * 1024
_LENGTH = struct.Struct("<I")
_CHECKSUM_SIZE = 4
_CHECKSUM = struct.Struct("<I")


class ViewStorage:
    """Ordered byte keys and values of one view, and its directory.

    Attributes:
        directory: for files of the view's own, where it declares ``keeps_files``; else None. It belongs to
            these data: when they begin anew, so does the directory.

        changes: how many rows were put or deleted in this transaction.
        horizon: the horizon of the database in this transaction: trees of commits before it are gone. What is
            stored may be older, until the data are made anew.

    Keys up to 479 bytes are ordered as bytes; longer ones by their first 448 bytes only. What is put waits
    in memory, at most 8 MiB of it, and goes to LMDB in key order, which costs half of what single puts do.

    Each row has a checksum over its key and its value. One that fails it raises ``DamagedView``, which the
    kernel takes for a reason to make the view anew.
    """

    def __init__(
        self,
        transaction: lmdb.Transaction[bytes],
        database: lmdb._Database,
        directory: FilePath | None = None,
        horizon: int = 0,
    ) -> None:
        self.directory = directory
        self.horizon = horizon
        self.changes = 0
        self._transaction = transaction
        self._database = database
        self._waiting: dict[bytes, bytes] = {}
        self._waiting_bytes = 0

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key, or None."""
        stored = _stored_key(key)
        value = self._waiting.get(stored)
        if value is None:
            value = self._transaction.get(stored, db=self._database)
            if value is None:
                return None
            value = _verified(stored, value)
        return value if len(stored) < _LONG_KEY else _split_value(stored, value)[1]

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a key; only while a commit is applied."""
        if len(key) >= _LONG_KEY:
            value = _LENGTH.pack(len(key)) + key + value
            key = _stored_key(key)
        self._waiting[key] = value
        self.changes += 1
        self._waiting_bytes += len(key) + len(value)
        if self._waiting_bytes > _MOST_WAITING_BYTES:
            self.write()

    def delete(self, key: bytes) -> bool:
        """Removes a key and returns whether it was there; only while a commit is applied."""
        stored = _stored_key(key)
        self.changes += 1
        waited = self._waiting.pop(stored, None) is not None
        return bool(self._transaction.delete(stored, db=self._database)) or waited

    def scan(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yields (key, value) in key order.

        While a commit is applied it shows what was put before it began; whether it shows what is put or
        deleted while it runs is not said.

        Args:
            prefix: only keys that begin with it (at most 448 bytes of it count for the order).
            after: start behind this key.
        """
        shared = prefix[:_KEPT_PREFIX]
        start = shared if after is None else max(_stored_key(after), shared)
        while True:
            self.write()
            transaction = self._transaction
            cursor = transaction.cursor(self._database)
            found = cursor.set_range(start) if start else cursor.first()
            while found:
                stored = cursor.key()
                if not stored.startswith(shared):
                    return
                key, value = _split_value(stored, _verified(stored, cursor.value()))
                if key.startswith(prefix) and key != after:
                    yield key, value
                    if self._transaction is not transaction:
                        # The commit goes on in another transaction.
                        start, after = stored, key
                        break
                found = cursor.next()
            else:
                return

    def write(self) -> None:
        """Gives to LMDB what was put; for the kernel's own use."""
        if self._waiting:
            pack = _CHECKSUM.pack
            items = [
                (key, value + pack(crc32(value, crc32(key)))) for key, value in sorted(self._waiting.items())
            ]
            self._waiting = {}
            self._waiting_bytes = 0
            cursor = self._transaction.cursor(self._database)
            # What comes behind all other rows fills its pages, where LMDB leaves them half empty otherwise.
            first = bisect_right(items, cursor.key(), key=_key_of_item) if cursor.last() else 0
            cursor.putmulti(items[:first])
            cursor.putmulti(items[first:], append=True)

    def move_to(
        self, transaction: lmdb.Transaction[bytes], database: lmdb._Database, horizon: int = 0
    ) -> None:
        """Goes on in another transaction; for the kernel's own use."""
        self.horizon = horizon
        self._transaction = transaction
        self._database = database
        self.changes = 0

    def take_over(self, other: ViewStorage) -> None:
        """Goes on in the transaction of another storage of the same data; for the kernel's own use."""
        self.move_to(other._transaction, other._database, other.horizon)


def _key_of_item(item: tuple[bytes, bytes]) -> bytes:
    return item[0]


def _stored_key(key: bytes) -> bytes:
    """LMDB takes keys up to 511 bytes: a longer one is cut and told apart by its hash."""
    return key if len(key) < _LONG_KEY else key[:_KEPT_PREFIX] + blake3(key).digest()


def _verified(stored_key: bytes, stored: bytes) -> bytes:
    """The value of a stored row, if its checksum shows that it was written under this key."""
    value = stored[:-_CHECKSUM_SIZE]
    if crc32(value, crc32(stored_key)).to_bytes(4, "little") != stored[-_CHECKSUM_SIZE:]:
        raise DamagedView("A row of the view fails its checksum.")
    return value


def _split_value(stored_key: bytes, value: bytes) -> tuple[bytes, bytes]:
    if len(stored_key) < _LONG_KEY:
        return stored_key, value
    (length,) = _LENGTH.unpack_from(value)
    return value[4 : 4 + length], value[4 + length :]
