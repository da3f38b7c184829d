"""What all processes of a database have counted, to look things up in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from svc.plugin import Series, read_metrics

__all__ = ["Counted", "Distribution"]


class Distribution(msgspec.Struct, frozen=True):
    """How long something took.

    Attributes:
        count: how often.
        mean_ms: on average.
        p50_ms, p95_ms, p99_ms: half, 95 and 99 of 100 took no longer, as exactly as the buckets tell.
    """

    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


class Counted:
    """Counters, levels and histograms as they are now. Reads a few files of the state directory at once."""

    def __init__(self, state_directory: Path) -> None:
        self.series = read_metrics(state_directory)

    def of(self, name: str, **labels: str) -> Iterator[Series]:
        """Yields the series of a metric that have these labels, among others."""
        for one in self.series:
            if one.declared.name == name and labels.items() <= dict(one.declared.labels).items():
                yield one

    def total(self, name: str, **labels: str) -> float:
        """Returns the sum of a counter or level over its series; of a histogram that of all it has seen."""
        return sum(one.values[-1] for one in self.of(name, **labels))

    def distribution(self, name: str, **labels: str) -> Distribution:
        """Returns how a histogram of seconds is spread, over its series."""
        return distribution_of(list(self.of(name, **labels)))


def distribution_of(series: list[Series]) -> Distribution:
    """Returns how histograms of seconds are spread that have the same bounds, taken together."""
    if not series:
        return Distribution(0, 0.0, 0.0, 0.0, 0.0)
    bounds = series[0].declared.bounds or ()
    same = [one.values for one in series if one.declared.bounds == bounds]
    *counts, total = map(sum, zip(*same, strict=True))
    number = int(sum(counts))
    mean = total / number if number else 0.0
    p50, p95, p99 = (_quantile(bounds, counts, share) for share in (0.5, 0.95, 0.99))
    return Distribution(number, *(round(seconds * 1000, 3) for seconds in (mean, p50, p95, p99)))


def _quantile(bounds: Sequence[float], counts: Sequence[float], share: float) -> float:
    """As Prometheus does: evenly spread within a bucket; of the last one its lower bound is known."""
    rank = share * sum(counts)
    lower = 0.0
    for upper, count in zip(bounds, counts, strict=False):
        if count and rank <= count:
            return lower + (upper - lower) * rank / count
        rank -= count
        lower = upper
    return lower if any(counts) else 0.0
