"""Findings: what is wrong, as the log, ``svc status``, ``svc plugins doctor`` and health all say it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import msgspec

from svc.errors import SvcError
from svc.redaction import redact_text, text_of

__all__ = [
    "Finding",
    "FindingDates",
    "bounded_findings",
    "describe_error",
    "describe_failure",
    "merge_findings",
    "public_findings",
]

MOST_FINDINGS = 100
MOST_CHARACTERS = 1000


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong.

    Attributes:
        code: which thing, for programs: ``database.latched``, ``plugin.broken``; stays the same.
        source: what it is about: ``database``, ``server``, or the id of a plugin.
        message: what is wrong, a sentence that a stranger may read: no secret, no path of the machine.
        advice: what to do about it, a sentence; empty where nothing can be done.
        process: which found it: ``worker``, ``background``, ``command``; empty where any would.
        since_ms: since when, Unix milliseconds; None when nobody knows.
        subject: which view, job, check or command of the source. Not for strangers.
        detail: more about it, such as the text of an exception, secrets left out. Not for strangers.
    """

    code: str
    source: str
    message: str
    advice: str = ""
    process: str = ""
    since_ms: int | None = None
    subject: str = ""
    detail: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Stays the same as long as the same thing is wrong, whichever process found it."""
        return self.code, self.source, self.subject

    @property
    def text(self) -> str:
        """All that there is to say, for whoever runs the server."""
        return f"{self.message} {self.detail}".rstrip()


class FindingDates:
    """Remembers since when each finding of one process is there, where the finding does not say it."""

    def __init__(self) -> None:
        self._since_ms: dict[tuple[str, str, str], int] = {}

    def date(self, findings: Iterable[Finding], process: str) -> tuple[Finding, ...]:
        """Returns all that is wrong now, each with its date."""
        now_ms = time.time_ns() // 1_000_000
        known, found = self._since_ms, tuple(findings)
        self._since_ms = {item.identity: item.since_ms or known.get(item.identity, now_ms) for item in found}
        return tuple(
            msgspec.structs.replace(
                item, process=item.process or process, since_ms=self._since_ms[item.identity]
            )
            for item in found
        )


def merge_findings(*lists: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns what several processes found, each once and sorted; the first text and earliest date count."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in (finding for each in lists for finding in each):
        present = found.get(finding.identity)
        found[finding.identity] = finding if present is None else _joined(present, finding)
    return tuple(sorted(found.values(), key=_place))


def public_findings(findings: Iterable[Finding]) -> list[dict[str, str | int | None]]:
    """Returns what strangers may read of findings; those that differ only by subject or detail are one."""
    shown: dict[tuple[str, str, str], dict[str, str | int | None]] = {}
    for finding in findings:
        members = shown.setdefault(
            (finding.code, finding.source, finding.message),
            {"code": finding.code, "source": finding.source, "message": finding.message},
        )
        if finding.advice:
            members["advice"] = finding.advice
        if finding.since_ms is not None:
            members.setdefault("since_ms", finding.since_ms)
    return list(shown.values())


def bounded_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns findings as a process publishes them: not too many, with texts that are not too long."""
    kept = list(findings)
    if len(kept) > MOST_FINDINGS:
        more = len(kept) - MOST_FINDINGS + 1
        said = "There is more that is wrong."
        last = Finding("server.more", "server", said, detail=f"{more} more findings.")
        kept = [*kept[: MOST_FINDINGS - 1], last]
    return tuple(msgspec.structs.replace(finding, **dict(_shortened(finding))) for finding in kept)


def _shortened(finding: Finding) -> Iterator[tuple[str, str]]:
    for name in ("code", "source", "message", "advice", "subject", "detail"):
        text: str = getattr(finding, name)
        if len(text) > MOST_CHARACTERS:
            yield name, f"{text[: MOST_CHARACTERS - 3]}..."


def _joined(first: Finding, other: Finding) -> Finding:
    times = [time for time in (first.since_ms, other.since_ms) if time is not None]
    processes = {name for text in (first.process, other.process) for name in text.split(", ") if name}
    return msgspec.structs.replace(
        first,
        since_ms=min(times, default=None),
        process=", ".join(sorted(processes)),
        detail=first.detail or other.detail,
    )


def _place(finding: Finding) -> tuple[bool, bool, str, str, str]:
    source = finding.source
    return source != "database", source != "server", source, finding.code, finding.subject


def describe_error(error: BaseException) -> str:
    """An exception as the part of a sentence: its type and the first line of its message, shortened."""
    # Before it is shortened: a secret that is cut in two would not be found.
    text = redact_text(text_of(error)).strip().splitlines()
    line = text[0][:300] if text else ""
    return f"{type(error).__name__}: {line}".rstrip(": .") if line else type(error).__name__


def describe_failure(error: BaseException) -> str:
    """An exception as a sentence that whoever runs the server may read; secrets are left out of it."""
    return redact_text(error.message) if isinstance(error, SvcError) else describe_error(error)
