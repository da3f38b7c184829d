"""Counters, levels and histograms of all processes that serve a database, exact also after one was killed.

A metric is declared once, in a module: ``READ = Counter("svc_files_read", "Files that were read.")``, and
counted by ``READ.add()``. Each process counts in memory that it shares through two files of the state
directory, ``counters/<pid>-<start>.values`` (64-bit floats) and ``.series`` (a line of JSON for each series:
which slots are whose), so that whoever reads sees all, and nothing is lost with a process. A worker's files
name the process of its server too, ``<pid>-<start>-<pid>-<start>``. What those left that have ended is added
up in ``counters/ended.json`` by the next one that starts, all but levels. When no process runs, and no server
of one that has ended, it begins with zero, as Prometheus expects of what was restarted.

Counting is a lookup and an addition, without a lock. What is counted on an event loop, as requests are, is
exact; two threads that add to one series at the same moment may lose one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from svc.native_locks import native_lock

__all__ = [
    "SECONDS",
    "Counter",
    "Declared",
    "Histogram",
    "Level",
    "Series",
    "begin_metrics",
    "counting_processes",
    "read_metrics",
]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of a time."""

_DIRECTORY = "counters"
_SLOTS = 16_384
_MOST_SERIES = 500
"""Of one metric: what else is counted is one more series, whose labels are all ``other``."""
_OTHER = "other"
_FLOAT = 8


class Declared(NamedTuple):
    """A series as its process declares it: a line of the file.

    Attributes:
        name: of the metric.
        text: what the metric is.
        bounds: upper bounds of the buckets of a histogram; None: it is none.
        labels: names and values, in the order of the declaration.
        is_level: whether it ends with its process; else it is counted for as long as the server runs.
    """

    name: str
    text: str
    bounds: tuple[float, ...] | None
    labels: tuple[tuple[str, str], ...]
    is_level: bool = False

    @property
    def slots(self) -> int:
        """How many values it has."""
        return 1 if self.bounds is None else len(self.bounds) + 2


class Series(NamedTuple):
    """One series as it is read.

    Attributes:
        declared: what it is.
        values: of a counter or level its count; of a histogram the number in each bucket, that above all,
            and the sum.
    """

    declared: Declared
    values: tuple[float, ...]


class _Memory:
    """The values of this process: its own at first, and shared once it serves a database."""

    def __init__(self) -> None:
        self.lock = native_lock()
        self.slots: Any = memoryview(bytearray(_SLOTS * _FLOAT)).cast("d")
        self.used = 0
        self.declared: list[tuple[Declared, int]] = []
        self._series: Any = None

    def take(self, declared: Declared) -> int:
        """Returns the first of new slots of a series; -1 where there are none left. Called under the lock."""
        first = self.used
        if first + declared.slots > _SLOTS:
            return -1
        self.used += declared.slots
        self.declared.append((declared, first))
        if self._series is not None:
            self._tell(declared, first)
        return first

    def share(self, base: Path) -> None:
        """Goes on in files that others read; what was counted until now goes with it."""
        with self.lock:
            values, series = base.with_suffix(".values"), base.with_suffix(".series")
            with open(values, "w+b") as file:
                try:
                    # To write into a hole of a mapped file kills the process where the disk is full.
                    os.posix_fallocate(file.fileno(), 0, _SLOTS * _FLOAT)
                except OSError:
                    values.unlink()
                    raise
                shared = memoryview(mmap.mmap(file.fileno(), _SLOTS * _FLOAT)).cast("d")
            shared[: self.used] = self.slots[: self.used]
            self._series = open(series, "ab", buffering=0)  # noqa: SIM115 - as long as the process
            for declared, first in self.declared:
                self._tell(declared, first)
            self.slots = shared

    def _tell(self, declared: Declared, first: int) -> None:
        with contextlib.suppress(OSError):
            self._series.write(json.dumps([*declared, first]).encode() + b"\n")


_memory = _Memory()


class _Metric:
    is_level = False

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), bounds: tuple[float, ...] | None = None
    ) -> None:
        self.name = name
        self.text = text
        self.labels = tuple(labels)
        self._bounds = bounds
        self._first: dict[tuple[str, ...], int] = {}

    def _at(self, values: tuple[str, ...]) -> int:
        """The first slot of a series; made when it is first counted."""
        with _memory.lock:
            first = self._first.get(values)
            if first is None:
                if len(self._first) >= _MOST_SERIES:
                    values = (_OTHER,) * len(self.labels)
                    first = self._first.get(values)
                if first is None:
                    named = tuple(zip(self.labels, values, strict=True))
                    declared = Declared(self.name, self.text, self._bounds, named, self.is_level)
                    first = self._first[values] = _memory.take(declared)
            return first


class Counter(_Metric):
    """What only grows.

    Args:
        name: as Prometheus wants it, without ``_total``: ``svc_files_read``.
        text: one sentence: what is counted.
        labels: names of labels; each distinct set of values is a series, so that there must be few.
    """

    def add(self, amount: float = 1.0, *labels: str) -> None:
        """Adds to the series of these values of the labels. Does not block."""
        first = self._first.get(labels)
        if first is None:
            first = self._at(labels)
        if first >= 0:
            _memory.slots[first] += amount


class Level(Counter):
    """How much there is now, as of open streams: what goes up is taken down again, by a negative amount.

    All living processes together; what one held that was killed is gone with it. Else as ``Counter``.
    """

    is_level = True


class Histogram(_Metric):
    """How large or how long something was.

    Args:
        name: with its unit: ``svc_commit_seconds``.
        text: one sentence: what is measured.
        labels: as for ``Counter``.
        bounds: upper bounds of the buckets, ascending.
    """

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), *, bounds: Sequence[float] = SECONDS
    ) -> None:
        self.bounds = tuple(bounds)
        super().__init__(name, text, labels, self.bounds)

    def observe(self, amount: float, *labels: str) -> None:
        """Counts one that was so large in the series of these values of the labels. Does not block."""
        first = self._first.get(labels)
        if first is None:
            first = self._at(labels)
        if first >= 0:
            slots = _memory.slots
            slots[first + bisect_left(self.bounds, amount)] += 1.0
            slots[first + len(self.bounds) + 1] += amount


def begin_metrics(state_directory: Path, server: int | None = None) -> None:
    """Shares what this process counts with the others of a database. Called once, after a fork.

    Args:
        state_directory: of the database.
        server: the process whose worker this is: as long as it lives, nothing begins with zero, also where
            all of its workers are replaced at once.
    """
    directory = state_directory / _DIRECTORY
    name = "-".join(_named(pid) for pid in (os.getpid(), server) if pid is not None)
    # Where the disk is full it counts for itself: nobody reads that.
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
        with _locked(directory):
            _add_up(directory)
            _memory.share(directory / name)


def read_metrics(state_directory: Path) -> list[Series]:
    """Returns what all processes of a database have counted, those that have ended too. Reads a few files."""
    directory = state_directory / _DIRECTORY
    total: _Total = {}
    with contextlib.suppress(OSError), _locked(directory):
        ended = _read_ended(directory)
        _sum(total, ended.series)
        for path in directory.glob("*.series"):
            if path.stem not in ended.taken:
                _sum(total, _read_process(path, lives=_lives(path)))
    return [Series(declared, tuple(values)) for declared, values in sorted(total.items(), key=_order)]


def counting_processes(state_directory: Path) -> list[int]:
    """Returns the processes that serve a database on this machine and count, by their ids."""
    present = (state_directory / _DIRECTORY).glob("*.series")
    return sorted(int(path.stem.partition("-")[0]) for path in present if _lives(path))


_Total = dict[Declared, list[float]]


def _order(item: tuple[Declared, list[float]]) -> tuple[str, Any]:
    return item[0].name, item[0].labels


def _sum(total: _Total, series: Iterable[Series]) -> None:
    for declared, values in series:
        present = total.setdefault(declared, [0.0] * len(values))
        present[:] = map(float.__add__, present, values)


def _lives(path: Path) -> bool:
    return _runs(_process_and_server(path)[0])


def _read_process(path: Path, *, lives: bool = False) -> Iterator[Series]:
    try:
        values = memoryview(path.with_suffix(".values").read_bytes()).cast("d")
        lines = path.read_bytes().splitlines()
    except (OSError, TypeError):
        return
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):  # A line that is being written.
            *words, first = json.loads(line)
            declared = _declared(*words)
            if type(first) is not int or first < 0:
                raise ValueError("this is no slot")
            if not (declared.is_level and not lives):
                yield _series(declared, values[first : first + declared.slots])


def _series(declared: Declared, values: Iterable[Any]) -> Series:
    """Returns a series; raises ValueError or TypeError for what nobody has counted: files may rot."""
    counted = tuple(map(float, values))
    if len(counted) != declared.slots or not all(map(math.isfinite, counted)):
        raise ValueError("these are no counts")
    return Series(declared, counted)


def _declared(
    name: str, text: str, bounds: list[float] | None, labels: list[list[str]], is_level: bool = False
) -> Declared:
    named = tuple((str(label), str(value)) for label, value in labels)
    return Declared(
        str(name), str(text), None if bounds is None else tuple(map(float, bounds)), named, is_level
    )


class _Ended(NamedTuple):
    """What ended processes have counted, those whose files are in it already, and the servers of all."""

    series: list[Series]
    taken: set[str]
    servers: set[str]


def _read_ended(directory: Path) -> _Ended:
    try:
        content = json.loads((directory / "ended.json").read_bytes())
        series = [_series(_declared(*words), values) for *words, values in content["series"]]
        return _Ended(series, set(content["processes"]), set(content["servers"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return _Ended([], set(), set())


def _add_up(directory: Path) -> None:
    """Adds what ended processes left to one file; where none runs and no server, all goes. Under the lock."""
    present = _read_ended(directory)
    ended: list[Path] = []
    servers = set(present.servers)
    running = False
    for path in directory.glob("*.series"):
        if _lives(path):
            running = True
        else:
            ended.append(path)
            servers.add(_process_and_server(path)[1])
    servers = set(filter(_runs, servers))
    if running or servers:
        total: _Total = {}
        _sum(total, present.series)
        for path in ended:
            if path.stem not in present.taken:
                _sum(total, _read_process(path))
        content = {
            "series": [[*declared, values] for declared, values in total.items()],
            "processes": [path.stem for path in ended],
            "servers": sorted(servers),
        }
        unnamed = directory / "ended.new"
        unnamed.write_text(json.dumps(content))
        os.replace(unnamed, directory / "ended.json")
    else:
        (directory / "ended.json").unlink(missing_ok=True)
    for path in ended:
        path.with_suffix(".values").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with open(directory / "lock", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _process_and_server(path: Path) -> tuple[str, str]:
    """The two of a file's name; "" for a server that there is not."""
    words = path.stem.split("-")
    return "-".join(words[:2]), "-".join(words[2:])


def _named(pid: int) -> str:
    """A process by its number, and when it began, since numbers come again."""
    return f"{pid}-{_start_of(pid)}"


def _runs(process: str) -> bool:
    pid, _, start = process.partition("-")
    return bool(start) and _start_of(pid) == start


def _start_of(pid: int | str) -> str:
    """When a process began, in ticks since the machine did; "" where there is none, or one that is dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b") ")[2].split()
            return "" if state in b"ZX" else fields[18].decode()
    except (OSError, IndexError, ValueError):
        return ""
