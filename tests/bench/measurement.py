"""What every measurement is given: where to write, how much to do, and where to report."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from report import Report

Value = TypeVar("Value")

TREE_FILES = 50_000


@dataclass(slots=True)
class Bench:
    """One measurement's surroundings.

    Attributes:
        report: takes rows and curves.
        directory: empty, on the disk that is measured, and removed when the measurement ends.
        shared: kept until the whole run ends, for what several measurements read.
        quick: whether small sizes and few rounds are wanted.
        wanted_documents: how many documents are queried; None for the usual number.
    """

    report: Report
    directory: Path
    shared: Path
    quick: bool
    wanted_documents: int | None = None
    _materials: dict[str, object] = field(default_factory=dict)

    def choose(self, whole: Value, quick: Value) -> Value:
        """One of two sizes, by whether the run is a quick one."""
        return quick if self.quick else whole

    @property
    def documents(self) -> int:
        """How many documents are queried."""
        return self.wanted_documents or self.choose(100_000, 5_000)

    def rounds(self, whole: int) -> int:
        """How often a measurement is repeated."""
        return min(whole, 2) if self.quick else whole

    def material(self, name: str, make: Callable[[Path], Value]) -> Value:
        """What ``make`` returned for ``shared / name``; it is called once in a run.

        Args:
            name: names the material, and the file or directory that it may take.
            make: makes it.
        """
        if name not in self._materials:
            shutil.rmtree(self.shared / name, ignore_errors=True)  # what a measurement that broke left
            self._materials[name] = make(self.shared / name)
        return self._materials[name]  # type: ignore[return-value]


def write_random(path: Path, size: int) -> Path:
    """Writes a file of random bytes, and returns its path."""
    source = random.Random(size)
    with open(path, "wb") as file:
        file.writelines(source.randbytes(min(1 << 20, size - begin)) for begin in range(0, size, 1 << 20))
        os.fsync(file.fileno())
    return path


def renew(path: Path) -> None:
    """Changes some bytes in each 8 KiB, so that no chunk is like one that was stored before.

    It is on the disk then: what a measurement waits for is not the writing of its source.
    """
    with open(path, "rb+") as file:
        for offset in range(0, path.stat().st_size, 1 << 13):
            file.seek(offset)
            file.write(random.randbytes(8))
        os.fsync(file.fileno())


def small_files(path: Path, count: int) -> Path:
    """Writes a directory tree of files of 1 KiB, a hundredth of them in each directory, no two alike."""
    for number in range(100):
        (path / f"d{number}").mkdir(parents=True)
    for number in range(count):
        (path / f"d{number % 100}" / f"f{number}").write_bytes(kibibyte(number))
    return path


def tree_of_small_files(bench: Bench) -> Path:
    """A directory tree of ``TREE_FILES`` files of 1 KiB, made once in a run."""
    return bench.material("tree", lambda path: small_files(path, TREE_FILES))


def kibibyte(number: int) -> bytes:
    """1 KiB that can't be compressed, another one for each number."""
    return random.Random(number).randbytes(1024)
