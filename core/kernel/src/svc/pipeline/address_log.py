"""Warnings about what callers do, bounded by address, so that nobody fills a disk with them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Any

from svc.native_locks import native_lock

__all__ = ["MOST_LINES", "AddressLog"]

MOST_LINES = 30
"""Lines in a minute about one address; a last one says that there are more."""

_MINUTE = 60
_MOST_ADDRESSES = 10_000


class AddressLog:
    """Writes warnings about addresses. Safe in every thread.

    Args:
        logger: where they go.
        things: what they are about, in the plural: ``refusals``.
    """

    def __init__(self, logger: logging.Logger, things: str) -> None:
        self._logger = logger
        self._things = things
        self._mutex = native_lock()
        self._counts: Counter[str] = Counter()
        self._ends = 0.0

    def warn_about(self, message: str, address: str | None, fields: dict[str, Any]) -> bool:
        """Writes a warning, unless many about the address were written in this minute.

        Args:
            message: the same for all of its kind.
            address: of the caller, if known.
            fields: of the line: nothing secret.

        Returns:
            Whether it was written.
        """
        seen = self._count(address or "")
        if seen > MOST_LINES:
            return False
        self._logger.warning(message, extra={"fields": fields})
        if seen == MOST_LINES:
            self._logger.warning(
                "further %s of this address are not written for a minute",
                self._things,
                extra={"fields": {"remote": address}},
            )
        return True

    def _count(self, address: str) -> int:
        with self._mutex:
            now = time.monotonic()
            if now >= self._ends or len(self._counts) >= _MOST_ADDRESSES:
                self._counts.clear()
                self._ends = now + _MINUTE
            self._counts[address] += 1
            return self._counts[address]
