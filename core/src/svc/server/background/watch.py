"""What a worker can say of the background process when it is asked for its health."""

from __future__ import annotations

import time
from pathlib import Path

from svc.server.background.election import is_elected
from svc.server.background.state_file import Report, read_report

__all__ = ["MISSING_SECONDS", "BackgroundWatch"]

MISSING_SECONDS = 30.0
"""How long a background process may be gone, or silent, before that is something wrong."""

_KEPT_SECONDS = 1.0


class BackgroundWatch:
    """Looks at the background process of a database.

    Args:
        path: the database.
        expected: whether the server keeps one, so that its absence is something wrong.
    """

    def __init__(self, path: str, *, expected: bool) -> None:
        self._path = Path(path)
        self._directory = self._path.with_name(f"{self._path.name}.d")
        self._expected = expected
        self._began = time.time()
        self._due = 0.0
        self._found: dict[str, str] = {}

    def findings(self) -> dict[str, str]:
        """What is wrong: by subject, a sentence for everybody. Empty when all is well; cheap."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _KEPT_SECONDS
            self._found = self._look()
        return self._found

    def _look(self) -> dict[str, str]:
        report = read_report(self._directory)
        found: dict[str, str] = {}
        # What a process told that is gone says nothing of how the views are now.
        is_alive = is_elected(self._path)
        if self._is_silent(report) and (is_alive or self._expected):
            found["background"] = (
                "The background process does not respond."
                if is_alive
                else "The background process is not running."
            )
        if is_alive and report is not None:
            failing = sum(1 for view in report.state.views if view.error is not None)
            if failing:
                found["views"] = "A view fails." if failing == 1 else f"{failing} views fail."
        return found

    def _is_silent(self, report: Report | None) -> bool:
        last = self._began if report is None else max(self._began, report.heartbeat_ms / 1000)
        return time.time() - last > MISSING_SECONDS
