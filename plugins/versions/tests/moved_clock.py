"""A clock that tests move: libfaketime under other processes, which read the time as a file says it."""

from __future__ import annotations

import os
import sysconfig
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["MovedClock", "months_after"]

_LIBRARY = Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH")) / "faketime" / "libfaketimeMT.so.1"
_MONTHS = 12


class MovedClock:
    """The clock of the processes that are started with its environment; it runs on, from where it is set.

    Args:
        file: says how far the clock is moved.
    """

    def __init__(self, file: Path) -> None:
        assert _LIBRARY.exists(), "libfaketime is not installed: run tests/system_packages.py"
        self._file = file
        self._offset = 0.0
        self.set(datetime.now(UTC))

    def environment(self, *, all_clocks: bool = False) -> dict[str, str]:
        """Variables for processes.

        Args:
            all_clocks: whether the monotonic clock is moved with the other: libfaketime cannot leave it alone
                for whoever sleeps by it. It may then be moved forward only, and not while a process runs.
        """
        return {
            "LD_PRELOAD": str(_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": str(int(not all_clocks)),
            "NO_FAKE_STAT": "1",
        }

    def set(self, to: datetime) -> None:
        """Sets it, forward or back."""
        self._offset = (to - datetime.now(UTC)).total_seconds()
        beside = self._file.with_suffix(".new")
        beside.write_text(f"{self._offset:+.3f}\n")
        os.replace(beside, self._file)


def months_after(at: datetime, months: int) -> datetime:
    """The same day and time so many months later; the last day of a month that is too short."""
    years, month = divmod(at.month - 1 + months, _MONTHS)
    lengths = (31, 29 if _is_leap(at.year + years) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return at.replace(year=at.year + years, month=month + 1, day=min(at.day, lengths[month]))


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
