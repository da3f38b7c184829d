"""Metrics as the library of Prometheus collects them, and the gauges of the database itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from svc.plugin import Series, counting_processes, read_metrics, space_of
from svc_cli import view_places
from svc_metrics.api import GAUGE_SOURCES, Gauge
from svc_metrics.memory import memory_of

if TYPE_CHECKING:
    from svc.plugin import Database, PluginContext

__all__ = ["Snapshot"]

_MOST_GAUGES = 1_000
"""Of one source."""


class Snapshot(CollectorRegistry):
    """All that there is to read of a database now.

    Args:
        context: the plugin's own.
    """

    def __init__(self, context: PluginContext) -> None:
        super().__init__(auto_describe=False)
        self._context = context

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics, each with all of its series. Reads files of the state directory."""
        database = self._context.database
        counted = read_metrics(database.state_directory)
        for _, series in groupby(counted, lambda one: one.declared.name):
            yield _family(list(series))
        gauges = sorted([*_own_gauges(database), *self._gauges_of_plugins()], key=lambda one: one.name)
        for name, same in groupby(gauges, lambda one: one.name):
            values = list(same)
            names = tuple(values[0].labels)
            family = GaugeMetricFamily(name, values[0].text, labels=names)
            for gauge in values:
                if tuple(gauge.labels) == names:
                    family.add_metric([str(value) for value in gauge.labels.values()], gauge.value)
            yield family

    def _gauges_of_plugins(self) -> Iterator[Gauge]:
        for name, source in sorted(self._context.extensions(GAUGE_SOURCES).items()):
            found: list[Gauge] = []
            try:
                for gauge in source.value.gauges(source.context):
                    found.append(gauge)
                    if len(found) == _MOST_GAUGES:
                        break
            except Exception as error:
                source.context.logger.error("The gauges %s can't be read.", name, exc_info=error)
            yield from found


def _family(series: list[Series]) -> Metric:
    """A counter or histogram with its series; what two programs declare differently is left out."""
    first = series[0].declared
    names = [label for label, _ in first.labels]
    same = [
        one
        for one in series
        if (one.declared.bounds, one.declared.is_level) == (first.bounds, first.is_level)
    ]
    if first.bounds is None:
        kind = GaugeMetricFamily if first.is_level else CounterMetricFamily
        counts = kind(first.name, first.text, labels=names)
        for one in same:
            counts.add_metric([value for _, value in one.declared.labels], one.values[0])
        return counts
    histogram = HistogramMetricFamily(first.name, first.text, labels=names)
    bounds = [*map(str, first.bounds), "+Inf"]
    for one in same:
        *in_buckets, total = one.values
        buckets = list(zip(bounds, accumulate(in_buckets), strict=True))
        histogram.add_metric([value for _, value in one.declared.labels], buckets, total)
    return histogram


def _own_gauges(database: Database) -> Iterator[Gauge]:
    totals, head = database.totals(), database.head()
    yield Gauge("svc_files", "Files at HEAD.", totals.files)
    yield Gauge("svc_directories", "Directories at HEAD.", totals.directories)
    yield Gauge("svc_symlinks", "Links at HEAD.", totals.symlinks)
    yield Gauge("svc_files_bytes", "Bytes of the files at HEAD.", totals.size)
    yield Gauge("svc_chunks", "Different chunks in the log, of all versions.", totals.chunks)
    yield Gauge("svc_chunks_bytes", "Stored bytes of those chunks.", totals.chunk_bytes)
    yield Gauge("svc_log_sequence", "Number of the last commit.", head.sequence)
    yield Gauge("svc_log_bytes", "Length of the log.", head.commit_end)
    text = "Commits that a view has not taken in."
    for name, applied in view_places(database.state_directory).items():
        yield Gauge("svc_view_commits_behind", text, max(0, head.sequence - applied), {"view": name})
    yield Gauge("svc_findings", "Things that are wrong with the database.", len(database.findings()))
    space = space_of(database)
    yield Gauge("svc_log_allocated_bytes", "What the log takes on the disk.", space.log_allocated)
    yield Gauge("svc_state_bytes", "What the state directory takes, key index and all.", space.state)
    yield Gauge("svc_key_index_bytes", "What the key index takes of it.", space.index)
    yield Gauge("svc_disk_bytes", "Size of the disk of the database.", space.disk)
    yield Gauge("svc_disk_free_bytes", "What is free on it.", space.disk_free)
    taken = memory_of(counting_processes(database.state_directory))
    text = "Processes that serve the database on this machine."
    yield Gauge("svc_processes", text, taken.processes)
    text = "Their resident memory, shared pages for each."
    yield Gauge("svc_processes_resident_bytes", text, taken.rss_bytes)
    yield Gauge("svc_processes_threads", "Their threads.", taken.thread_count)
    yield Gauge("svc_processes_open_files", "Their open file descriptors.", taken.fd_count)
