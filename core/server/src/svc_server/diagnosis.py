"""The one list of what is wrong: what all living processes have found, and what can be seen by looking.

A process tells of itself by a ``Reporter``: what is new is a line of its log, and all of it is published
beside the database, for whoever asks (``svc status``, ``svc plugins doctor``, health).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence

from svc.database import Database
from svc.findings import Finding, FindingDates, bounded_findings, merge_findings
from svc_cli.processes.diagnosis import storage_findings
from svc_cli.processes.registration import Registration, published_lists, registered_processes
from svc_cli.processes.watch import background_findings
from svc_server.certificates import certificate_findings
from svc_server.installation import InstallationCheck

__all__ = ["Reporter", "Surroundings"]

_KEPT_SECONDS = 1.0

_log = logging.getLogger("svc.findings")


class Reporter:
    """Tells what one process finds wrong: to its log when that changes, and beside the database."""

    def __init__(self, registration: Registration, process: str, allowed: Sequence[str] | None) -> None:
        self._registration = registration
        self._process = process
        self._allowed = allowed
        self._dates = FindingDates()
        self._told: dict[tuple[str, str, str], Finding] = {}

    def tell(self, found: Iterable[Finding]) -> tuple[Finding, ...]:
        """Takes all that is wrong now, and returns it as it was published. Never blocks for long."""
        published = self._dates.date(bounded_findings(merge_findings(found)), self._process)
        findings = {finding.identity: finding for finding in published}
        for identity, finding in findings.items():
            if identity not in self._told:
                _write("Something is wrong.", logging.WARNING, finding)
        for identity, finding in self._told.items():
            if identity not in findings:
                _write("It is not wrong any more.", logging.INFO, finding)
        self._told = findings
        self._registration.publish(published, self._allowed)
        return published


def _write(text: str, level: int, finding: Finding) -> None:
    members = {
        name: value
        for name in ("code", "source", "subject", "message", "detail", "advice")
        if (value := getattr(finding, name))
    }
    _log.log(level, text, extra={"fields": members})


class Surroundings:
    """What a worker knows of what is beside it. ``findings`` is cheap to ask often."""

    def __init__(
        self, allowed: Sequence[str] | None, *, expected: bool, certificate: str | None = None
    ) -> None:
        self._certificate = certificate
        self._expected_since_ms = time.time_ns() // 1_000_000 if expected else None
        self._installation = InstallationCheck(allowed)
        self._due = 0.0
        self._found: tuple[Finding, ...] = ()

    def findings(self, database: Database) -> tuple[Finding, ...]:
        """What the other processes have found, and what can be seen beside this one."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _KEPT_SECONDS
            # What this process publishes itself is older than what it knows.
            others = published_lists(database.state_directory, without=os.getpid())
            self._found = merge_findings(self._beside(database), *(each.findings for each in others))
        return self._found

    def look(self, database: Database) -> list[Finding]:
        """What can be seen beside this process; called about every second, which keeps it up to date."""
        self._installation.tick(registered_processes(database.state_directory))
        return list(self._beside(database))

    def close(self) -> None:
        """Ends what is under way."""
        self._installation.close()

    def _beside(self, database: Database) -> Iterator[Finding]:
        yield from storage_findings(database)
        processes = registered_processes(database.state_directory)
        yield from background_findings(database.place, processes, expected_since_ms=self._expected_since_ms)
        yield from self._installation.findings
        if self._certificate is not None:
            yield from certificate_findings(self._certificate)
