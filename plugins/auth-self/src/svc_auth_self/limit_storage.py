"""Where rate limits are kept: LMDB beside the database, as the library ``limits`` wants it.

It is imported when somebody signs in: the library brings along all that it can count with.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import struct
import threading
import time
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import lmdb
from limits.storage import MovingWindowSupport, Storage

__all__ = ["LimitStorage"]

_log = logging.getLogger(__name__)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAP_BYTES = 256 * 1024 * 1024
_MOST_KEYS = 100_000
"""A full map could not be cleared either: this many keys are a part of it."""
_LENGTH = struct.Struct("<d")


class _Environment:
    """An open LMDB environment; it is closed when nobody uses it any more."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.lmdb = lmdb.open(
            os.fspath(directory),
            map_size=_MAP_BYTES,
            sync=False,
            metasync=False,
            mode=0o600,
            max_readers=1024,
        )


_open: WeakValueDictionary[tuple[int, str], _Environment] = WeakValueDictionary()
_open_lock = threading.Lock()


def _environment(parent: Path) -> _Environment:
    """Opens the environment of this boot, once a process."""
    boot = _BOOT_ID.read_text("ascii").strip() if _BOOT_ID.exists() else "limits"
    directory = parent / boot
    key = (os.getpid(), os.fspath(directory))
    with _open_lock:
        environment = _open.get(key)
        if environment is None:
            environment = _open[key] = _Environment(directory)
            _remove_others(parent, boot)
        return environment


def _remove_others(parent: Path, boot: str) -> None:
    """Removes what was written before the machine was started anew: it may be damaged."""
    with contextlib.suppress(OSError):
        for other in parent.iterdir():
            if other.name != boot:
                shutil.rmtree(other, ignore_errors=True)


class LimitStorage(Storage, MovingWindowSupport):
    """Times of events by key: the window's seconds, then the times, newest first."""

    STORAGE_SCHEME = None

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._environment = _environment(directory)

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        """What the library may meet here."""
        return lmdb.Error

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Counts events, if all of them are within the limit."""
        if amount > limit:
            return False
        name = key.encode()
        with self._environment.lmdb.begin(write=True) as transaction:
            times = _times(transaction.get(name), expiry)
            if len(times) + amount > limit:
                return False
            if transaction.stat()["entries"] >= _MOST_KEYS:
                _make_room(transaction)
            kept = (float(expiry), *[time.time()] * amount, *times)
            transaction.put(name, struct.pack(f"<{len(kept)}d", *kept))
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Returns the time of the oldest event that counts, and how many do."""
        with self._environment.lmdb.begin() as transaction:
            times = _times(transaction.get(key.encode()), expiry)
        return (times[min(limit, len(times)) - 1], len(times)) if times else (time.time(), 0)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Counts events without a limit; returns how many there are."""
        self.acquire_entry(key, 1 << 20, expiry, amount)
        return self.get(key)

    def get(self, key: str) -> int:
        """Returns how many events of a key are kept."""
        with self._environment.lmdb.begin() as transaction:
            value = transaction.get(key.encode())
        return 0 if value is None else len(value) // _LENGTH.size - 1

    def get_expiry(self, key: str) -> float:
        """Returns when the last event of a key ends to count."""
        with self._environment.lmdb.begin() as transaction:
            value = transaction.get(key.encode())
        return time.time() if value is None else _ends(value)

    def check(self) -> bool:
        """Whether the environment can be read."""
        with self._environment.lmdb.begin() as transaction:
            transaction.stat()
        return True

    def reset(self) -> int | None:
        """Forgets everything."""
        with self._environment.lmdb.begin(write=True) as transaction:
            transaction.drop(self._environment.lmdb.open_db(None), delete=False)
        return None

    def clear(self, key: str) -> None:
        """Forgets the events of a key."""
        with self._environment.lmdb.begin(write=True) as transaction:
            transaction.delete(key.encode())


def _make_room(transaction: lmdb.Transaction[bytes]) -> None:
    """Removes what counts no more; where that is too little, the half of what is there."""
    now = time.time()
    alive: list[bytes] = []
    ended: list[bytes] = []
    for key, value in transaction.cursor():
        (ended if _ends(value) <= now else alive).append(key)
    if len(ended) * 4 < len(alive):
        _log.warning("Half of the rate limits begin anew: more clients were counted than there is room for.")
        ended += alive[: len(alive) // 2]
    for key in ended:
        transaction.delete(key)


def _times(value: Any, expiry: int) -> tuple[float, ...]:
    """The times that are within a window that ends now, newest first."""
    if value is None:
        return ()
    begin = time.time() - expiry
    return tuple(at for at in struct.unpack(f"<{len(value) // 8}d", value)[1:] if at > begin)


def _ends(value: bytes) -> float:
    window, newest = struct.unpack_from("<2d", value)
    return float(window) + float(newest)
