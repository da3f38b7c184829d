"""What a benchmark measured, beside what it is measured against in the same run."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

T = TypeVar("T")

# A load average above it says that somebody else is at work.
_QUIET = 0.7


@dataclass(frozen=True, slots=True)
class Series:
    """Repeated measurements of one thing: median, extremes, and how many there were."""

    median: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Series:
        """Sums up measurements."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def text(self, unit: str = "") -> str:
        """The median with its unit, and the spread when there is one."""
        spread = "" if self.rounds == 1 else f" ({_figure(self.low)} to {_figure(self.high)})"
        return f"{_figure(self.median)}{unit and ' ' + unit}{spread}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        name: of the measurement that it belongs to.
        work: what was done.
        ours: what was measured.
        unit: of ``ours`` and ``theirs``.
        peer: what it is measured against; empty for a plain limit.
        theirs: that, measured in the same run, interleaved; None for a plain limit.
        ratio: of each round's two figures; None for a plain limit.
        goal: the ratio (or limit) to reach; None when there is none.
        at_most: whether the goal is an upper bound.
    """

    name: str
    work: str
    ours: Series
    unit: str
    peer: str
    theirs: Series | None
    ratio: Series | None
    goal: float | None
    at_most: bool = False

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached, by the median; None without one."""
        if self.goal is None:
            return None
        value = (self.ratio or self.ours).median
        return value <= self.goal if self.at_most else value >= self.goal

    @property
    def goal_text(self) -> str:
        """The goal in words; empty without one."""
        if self.goal is None:
            return ""
        unit = "" if self.ratio else f" {self.unit}"
        return f"{'at most' if self.at_most else 'at least'} {self.goal:g}{unit}"

    @property
    def sure(self) -> bool:
        """Whether every round says of the goal what the median says."""
        values = self.ratio or self.ours
        return self.goal is None or not values.low < self.goal < values.high

    @property
    def verdict(self) -> str:
        """``reached``, ``missed`` or nothing; with a question mark when not every round agrees."""
        verdict = {True: "reached", False: "missed", None: ""}[self.reached]
        return verdict if self.sure else f"{verdict}?"


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve: where, and what was measured there."""

    x: float
    y: Series


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of the picture: its title, and what its axes show.

    Attributes:
        title: what is compared.
        x: name of the horizontal axis.
        y: name of the vertical axis, with the unit.
        sizes: whether the horizontal axis counts bytes.
    """

    title: str
    x: str
    y: str
    sizes: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of one panel."""

    panel: Panel
    label: str
    points: tuple[Point, ...]


def machine() -> dict[str, Any]:
    """What the figures are measured on, and how busy it is now."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
    }


@dataclass(slots=True)
class Report:
    """The rows and curves of one run, and the measurements that broke.

    Attributes:
        name: of the measurement that goes on; rows that are added belong to it.
        rows: in the order of their measurement.
        curves: likewise.
        broken: what went wrong, by the measurement's name.
        started: the machine when the run began.
    """

    name: str = ""
    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    started: dict[str, Any] = field(default_factory=machine)

    def compare(
        self,
        work: str,
        ours: Sequence[float],
        unit: str,
        peer: str,
        theirs: Sequence[float],
        goal: float | None = None,
        *,
        at_most: bool = False,
    ) -> None:
        """Adds a row that stands beside a peer.

        Args:
            work: what was done.
            ours: what each round measured.
            unit: of both.
            peer: what it is measured against.
            theirs: what the same rounds measured there.
            goal: the ratio to reach.
            at_most: whether a smaller ratio is better.
        """
        ratio = Series.of([mine / other for mine, other in zip(ours, theirs, strict=True)])
        row = Row(
            self.name, work, Series.of(ours), unit, peer, Series.of(theirs), ratio, goal, at_most=at_most
        )
        self._add(row)

    def limit(self, work: str, ours: Sequence[float], unit: str, limit: float | None = None) -> None:
        """Adds a row that has an upper limit, or none."""
        self._add(Row(self.name, work, Series.of(ours), unit, "", None, None, limit, at_most=True))

    def curve(self, panel: Panel, label: str, points: Mapping[float, Sequence[float]]) -> None:
        """Adds a line of the picture: what was measured at each place."""
        line = tuple(Point(x, Series.of(values)) for x, values in points.items())
        self.curves.append(Curve(panel, label, line))

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        ratio = "" if row.ratio is None else f", {row.ratio.median:.3g} times {row.peer}"
        print(f"   {row.work}: {row.ours.text(row.unit)}{ratio} {row.verdict}", flush=True)

    def print_table(self) -> None:
        """Prints all rows: medians, and in brackets the smallest and the greatest."""
        table = Table(title="svc bench: medians and ratios of one run (smallest to greatest)")
        for heading in ("name", "work", "measured", "against", "ratio", "goal", ""):
            table.add_column(heading, overflow="fold")
        colours = {"reached": "green", "missed": "red", "": ""}
        for row in self.rows:
            peer = row.peer if row.theirs is None else f"{row.peer}: {row.theirs.text(row.unit)}"
            ratio = "" if row.ratio is None else row.ratio.text()
            verdict = row.verdict
            columns = (row.name, row.work, row.ours.text(row.unit), peer, ratio, row.goal_text)
            table.add_row(*columns, verdict and f"[{colours[verdict.rstrip('?')]}]{verdict}[/]")
        Console(width=None if sys.stdout.isatty() else 180).print(table)
        reached = [row.reached for row in self.rows]
        unsure = sum(not row.sure for row in self.rows)
        print(f"{reached.count(True)} goals reached, {reached.count(False)} missed; {unsure} of these unsure")
        load = self.started["load_average"][0]
        if load > _QUIET:
            print(
                f"the machine was busy when the run began (load average {load:.1f}): measure again when not"
            )
        for name, error in self.broken.items():
            print(f"{name} broke: {error}")

    def save(self, path: Path) -> None:
        """Writes rows, curves and the machine as JSON."""
        content = {
            "machine": self.started,
            "rows": [{**asdict(row), "reached": row.reached, "sure": row.sure} for row in self.rows],
            "curves": [asdict(curve) for curve in self.curves],
            "broken": self.broken,
        }
        path.write_text(json.dumps(content, indent=2) + "\n")


def interleave(rounds: int, *measures: Callable[[], T]) -> list[list[T]]:
    """Runs measurements in turn (A B A B) and returns what each measured, one list for each of them."""
    values: list[list[T]] = [[] for _ in measures]
    for _ in range(rounds):
        for measure, measured in zip(measures, values, strict=True):
            measured.append(measure())
    return values


def seconds_of(work: Callable[[], object]) -> float:
    """Returns how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _figure(value: float) -> str:
    """Three digits that count, and none of the form 1e+03."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
