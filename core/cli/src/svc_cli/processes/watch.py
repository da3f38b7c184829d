"""What is wrong with the background process of a database, as everybody else sees it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from svc.findings import Finding
from svc.log import LogPlace
from svc_cli.processes.election import is_elected
from svc_cli.processes.registration import RegisteredProcess
from svc_cli.processes.state_file import read_report

__all__ = ["MISSING_SECONDS", "background_findings"]

MISSING_SECONDS = 30.0
"""How long a background process may be gone, or silent, before that is something wrong."""

CRASHES = 3
"""How many ends in a row, each soon after the start, are no accident."""


def background_findings(
    place: LogPlace, processes: Iterable[RegisteredProcess], *, expected_since_ms: int | None = None
) -> Iterator[Finding]:
    """Yields what is wrong with the background process; blocks for less than a millisecond.

    ``expected_since_ms``: since when the caller's own server keeps one; None if it keeps none, or another
    asks.
    """
    report = read_report(place.state_directory)
    is_alive = is_elected(place.lock_file)
    if report is not None and report.state.crashes >= CRASHES:
        yield Finding(
            "background.crashing",
            "server",
            "The background process ends again and again soon after its start.",
            "Look at the log of the server for what it says at its end.",
            detail=f"{report.state.crashes} times in a row.",
        )
    since = _serving_since(processes, expected_since_ms, elected=is_alive)
    if since is None:
        return
    last_ms = max(since, report.heartbeat_ms if report is not None else 0)
    if time.time() * 1000 - last_ms <= MISSING_SECONDS * 1000:
        return
    if is_alive:
        yield Finding(
            "background.silent",
            "server",
            "The background process does not respond.",
            "Views are brought up to date by whoever needs them meanwhile. If it lasts, kill the process: "
            "the server starts another.",
            since_ms=last_ms,
        )
    else:
        yield Finding(
            "background.missing",
            "server",
            "The background process is not running.",
            "Look at the log of the server for why it can't be started.",
            since_ms=last_ms,
        )


def _serving_since(
    processes: Iterable[RegisteredProcess], expected_since_ms: int | None, *, elected: bool
) -> int | None:
    """Since when there should be a background process, Unix milliseconds; None if none is expected."""
    known = [item for item in processes if item.kind != "standby"]
    keepers = [item.started_ms for item in known if item.keeps_background or elected]
    if expected_since_ms is not None:
        keepers.append(expected_since_ms)
    return min(keepers, default=None)
