"""What a benchmark measured, beside what it is measured against in the same run."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        work: what was done.
        value: median of what was measured.
        unit: of ``value`` and ``peer_value``.
        peer: what it is measured against.
        peer_value: median of that, measured in the same run, interleaved; None for a plain limit.
        ratio: how ours compares; bigger is better unless ``at_most``.
        goal: the ratio (or limit) to reach; None when there is none.
        at_most: whether the goal is an upper bound.
    """

    work: str
    value: float
    unit: str
    peer: str
    peer_value: float | None
    ratio: float
    goal: float | None
    at_most: bool = False

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal


@dataclass(slots=True)
class Report:
    """The rows of one run."""

    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Adds a row and prints it at once."""
        self.rows.append(row)
        peer = "" if row.peer_value is None else f" against {row.peer_value:,.3g} {row.unit}"
        print(f"{row.work}: {row.value:,.3g} {row.unit}{peer} ({row.peer}): {row.ratio:.3g}", flush=True)

    def print_table(self) -> None:
        """Prints all rows."""
        table = Table(title="svc bench: ratios of one run")
        for heading in ("work", "measured", "against", "ratio", "goal", ""):
            table.add_column(heading)
        for row in self.rows:
            peer = row.peer if row.peer_value is None else f"{row.peer}: {row.peer_value:,.3g} {row.unit}"
            goal = "" if row.goal is None else f"{'at most' if row.at_most else 'at least'} {row.goal:g}"
            mark = {True: "reached", False: "missed", None: ""}[row.reached]
            table.add_row(row.work, f"{row.value:,.3g} {row.unit}", peer, f"{row.ratio:.3g}", goal, mark)
        Console(width=150).print(table)

    def save(self, path: Path) -> None:
        """Writes the rows as JSON."""
        path.write_text(json.dumps([asdict(row) for row in self.rows], indent=2) + "\n")


def interleave(first: Callable[[], float], second: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Runs two measurements in turn (A B A B) and returns the median of each."""
    firsts, seconds = [], []
    for _ in range(rounds):
        firsts.append(first())
        seconds.append(second())
    return statistics.median(firsts), statistics.median(seconds)


def seconds_of(work: Callable[[], object]) -> float:
    """Returns how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
