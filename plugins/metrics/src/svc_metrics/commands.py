"""``svc stats`` and ``svc top``, on a file or a server."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import click

from svc_cli import Source, json_option, print_json, readable_bytes, source_options, terminal_text
from svc_metrics.models import RouteLatency, Statistics
from svc_metrics.operations import read_statistics

__all__ = ["stats", "top"]

_ROUTES = 10
_CLEAR = "\x1b[H\x1b[2J"


@click.command(short_help="Shows what a database holds and takes, and what a server does.")
@source_options
@json_option
def stats(*, source: Source, as_json: bool) -> None:
    """Shows what a database holds and takes, and what its server has done."""
    found = source.call(read_statistics)
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(_lines(found, None, 0.0)))


@click.command(short_help="Shows what a server does, live.")
@click.option("--interval", default=2.0, show_default=True, type=click.FloatRange(0.2, 3600), help="Seconds.")
@click.option("--count", type=click.IntRange(1), help="End after so many; by default with Ctrl-C.")
@source_options
def top(*, interval: float, count: int | None, source: Source) -> None:
    """Shows what a server does, again and again: rates, latency, lag, tasks and streams.

    Given a file, it shows what the server of that file does.
    """
    is_terminal = sys.stdout.isatty()
    before: Statistics | None = None
    shown, passed = 0, 0.0
    while True:
        found = source.call(read_statistics)
        at = time.monotonic()
        text = "\n".join(_lines(found, before, passed))
        click.echo(_CLEAR + text if is_terminal else text + "\n")
        shown += 1
        if count is not None and shown >= count:
            return
        time.sleep(interval)
        before, passed = found, time.monotonic() - at


def _lines(now: Statistics, before: Statistics | None, seconds: float) -> Iterator[str]:
    health, memory = now.health, now.memory["process"]
    known = now.identity
    yield terminal_text(f"{known.location}  commit {known.sequence}  svc {known.svc_version}")
    counts = "  ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in now.counts.items())
    yield terminal_text(counts)
    yield "  ".join(f"{name.replace('_', ' ')} {readable_bytes(size)}" for name, size in now.sizes.items())
    yield (
        f"processes {memory['processes']}  memory {readable_bytes(memory['rss_bytes'])}  "
        f"threads {memory['thread_count']}  files {memory['fd_count']}  "
        f"disk {health['disk_usage_percent']:.0f}% full"
    )
    yield (
        f"findings {health['findings']:.0f}  views {health['view_commits_behind']:.0f} commits behind  "
        f"writes waiting {health['write_buffer_depth']:.0f}"
    )
    yield ""
    yield f"{'A SECOND':<24}{'1 MIN':>12}{'5 MIN':>12}{'15 MIN':>12}{'PEAK':>12}"
    for name, of_one in now.throughput.items():
        label = name.removesuffix("_per_sec").replace("_", " ")
        values = [of_one.get(window) for window in ("1m", "5m", "15m", "peak_1m")]
        yield f"{label:<24}" + "".join(f"{_rate(value):>12}" for value in values)
    yield ""
    yield f"{'LATENCY':<44}{'COUNT':>10}{'A SECOND':>10}{'MEAN':>10}{'P50':>10}{'P99':>10}"
    earlier = {} if before is None else _counts(before)
    routes = sorted(now.latency.requests, key=lambda one: _order(one, earlier))
    for one in routes[:_ROUTES]:
        name = terminal_text(f"{one.method or '-'} {one.route or 'no route'}")
        yield _row(name, one, (one.spread.count - earlier.get(_name(one), one.spread.count)), seconds)
    for label, spread in (
        ("commit", now.latency.commit),
        ("  waiting for the lock", now.latency.lock),
        ("  waiting for the disk", now.latency.sync),
    ):
        yield _row(label, RouteLatency("", "", spread), 0, 0.0)


def _row(name: str, one: RouteLatency, more: int, seconds: float) -> str:
    spread = one.spread
    rate = f"{more / seconds:,.1f}" if seconds else "-"
    times = "".join(f"{value:>7,.1f} ms" for value in (spread.mean_ms, spread.p50_ms, spread.p99_ms))
    return f"{name[:43]:<44}{spread.count:>10,}{rate:>10}{times}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _name(one: RouteLatency) -> tuple[str, str]:
    return one.route, one.method


def _counts(statistics: Statistics) -> dict[tuple[str, str], int]:
    return {_name(one): one.spread.count for one in statistics.latency.requests}


def _order(one: RouteLatency, earlier: dict[tuple[str, str], int]) -> tuple[int, int]:
    count = one.spread.count
    return -(count - earlier.get(_name(one), count)), -count
