"""How much a server does a second: samples of what was counted, and what follows from them.

The background process takes a sample every few seconds and keeps those of a quarter of an hour in a small
file of the state directory, so that rates go on when it is started anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from svc.plugin import BackgroundJob, StateFile
from svc_metrics.counted import Counted

if TYPE_CHECKING:
    from svc.plugin import JobContext

__all__ = ["Sample", "Samples", "SamplingJob", "add_sample", "rates_of", "read_rates"]

_INTERVAL_S = 5.0
_WINDOWS_S = {"1m": 60, "5m": 300, "15m": 900}
_LONGEST_S = 930.0
_SILENT_S = 60.0
_READS = frozenset({"200", "206", "304"})

Rates = dict[str, dict[str, float | None]]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """What was counted until a moment.

    Attributes:
        at: Unix seconds.
        writes: transactions committed.
        reads: requests by GET and HEAD that were answered with what is there.
        bytes_written: bytes of the bodies of requests.
        bytes_read: bytes of the bodies of answers.
    """

    at: float
    writes: float
    reads: float
    bytes_written: float
    bytes_read: float


class Samples(msgspec.Struct, frozen=True):
    """The samples of a quarter of an hour, oldest first, and the highest rates over a minute so far."""

    samples: tuple[Sample, ...] = ()
    peak_writes: float = 0.0
    peak_reads: float = 0.0


class SamplingJob(BackgroundJob):
    """Takes a sample every five seconds."""

    name = "metrics.sampling"
    interval_s = _INTERVAL_S

    def run(self, context: JobContext) -> None:
        """Reads what was counted, and writes one small file."""
        directory = context.database.state_directory
        file = _file_of(directory)
        said = file.read()
        file.beat(add_sample(Samples() if said is None else said[0], _take(Counted(directory))))


def add_sample(samples: Samples, new: Sample) -> Samples:
    """Returns the samples with one more; those before a pause or a restart of the server count no more."""
    kept = [one for one in samples.samples if one.at > new.at - _LONGEST_S]
    last = kept[-1] if kept else None
    if last is None or not 0 < new.at - last.at < _SILENT_S or _went_back(last, new):
        return Samples((new,))
    kept.append(new)
    minute = _over(kept, 60)
    return Samples(
        tuple(kept),
        max(samples.peak_writes, minute.writes),
        max(samples.peak_reads, minute.reads),
    )


def rates_of(samples: Samples | None) -> Rates:
    """Returns what happened a second, over three windows; None where there are no samples.

    A window in which the server was not there all the time is as long as it was.
    """
    known = None if samples is None or len(samples.samples) < 2 else samples
    rates: Rates = {}
    for name in ("writes", "reads", "bytes_written", "bytes_read"):
        of_one = rates[f"{name}_per_sec"] = dict.fromkeys(_WINDOWS_S)
        if known is not None:
            for window, seconds in _WINDOWS_S.items():
                of_one[window] = round(getattr(_over(known.samples, seconds), name), 3)
    rates["writes_per_sec"]["peak_1m"] = None if known is None else round(known.peak_writes, 3)
    rates["reads_per_sec"]["peak_1m"] = None if known is None else round(known.peak_reads, 3)
    return rates


def read_rates(state_directory: Path) -> Rates:
    """Returns the rates as the background process knows them now; None for each where it is not there."""
    said = _file_of(state_directory).read()
    is_alive = said is not None and time.time() - said[1] / 1000 < _SILENT_S
    return rates_of(said[0] if said is not None and is_alive else None)


def _over(samples: Sequence[Sample], seconds: float) -> Sample:
    """The mean a second over the last ``seconds``."""
    last = samples[-1]
    first = next(one for one in samples if one.at >= last.at - seconds - _INTERVAL_S / 2)
    passed = max(last.at - first.at, 1e-9)
    return Sample(
        last.at,
        (last.writes - first.writes) / passed,
        (last.reads - first.reads) / passed,
        (last.bytes_written - first.bytes_written) / passed,
        (last.bytes_read - first.bytes_read) / passed,
    )


def _went_back(last: Sample, new: Sample) -> bool:
    return (
        new.writes < last.writes
        or new.reads < last.reads
        or new.bytes_written < last.bytes_written
        or new.bytes_read < last.bytes_read
    )


def _take(counted: Counted) -> Sample:
    reads = 0.0
    for method in ("GET", "HEAD"):
        for one in counted.of("svc_http_request_seconds", method=method):
            if dict(one.declared.labels).get("status") in _READS:
                reads += sum(one.values[:-1])
    return Sample(
        time.time(),
        counted.total("svc_commit_transactions"),
        reads,
        counted.total("svc_http_received_bytes"),
        counted.total("svc_http_sent_bytes"),
    )


def _file_of(state_directory: Path) -> StateFile[Samples]:
    return StateFile(state_directory / "metrics" / "samples.json", Samples)
