"""Opening a database of 100,000 files, in a new process each time: after a clean end and after SIGKILL."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from measurement import Bench, kibibyte

from svc.database import Database

_LONG_TAIL = 1000

# Opened and asked once; importing svc does not count.
_OPEN = """
import sys, time
from svc.database import Database
start = time.perf_counter()
database = Database(sys.argv[1])
assert database.at().get(("d0", "f0")) is not None
print((time.perf_counter() - start) * 1000)
assert sys.argv[2] == "0" or database.at().get(("tail", str(int(sys.argv[2]) - 1))) is not None
database.close()
"""
_WRITE_AND_DIE = """
import os, signal, sys
from svc.database import Database
database = Database(sys.argv[1])
for number in range(int(sys.argv[2])):
    with database.transaction() as transaction:
        transaction.put(("tail", str(number)), os.urandom(1024))
os.kill(os.getpid(), signal.SIGKILL)
"""


def opening(bench: Bench) -> None:
    """Open of 100,000 files until the first is found: clean, after kill -9, and with a tail to read."""
    path = bench.directory / "opening.svcdb"
    count = bench.choose(100_000, 10_000)
    with Database(path) as database:
        for start in range(0, count, 10_000):
            with database.transaction() as transaction:
                for number in range(start, start + 10_000):
                    transaction.put((f"d{number % 100}", f"f{number}"), kibibyte(number))
    clean, killed, tails = [], [], []
    for _ in range(bench.rounds(5)):
        _open(path, 0)
        clean.append(_open(path, 0))
        _write_and_die(path, 1)
        killed.append(_open(path, 1))
        _write_and_die(path, _LONG_TAIL)
        tails.append(_open(path, _LONG_TAIL))
    bench.report.limit(f"open {count:,} files, clean", clean, "ms", 5)
    bench.report.limit(f"open {count:,} files after kill -9, 1 commit since the open", killed, "ms", 5)
    bench.report.limit(
        f"open {count:,} files after kill -9, {_LONG_TAIL:,} commits since the open", tails, "ms"
    )


def _write_and_die(path: Path, commits: int) -> None:
    died = subprocess.run([sys.executable, "-c", _WRITE_AND_DIE, str(path), str(commits)])
    assert died.returncode == -signal.SIGKILL, died


def _open(path: Path, tail: int) -> float:
    command = [sys.executable, "-c", _OPEN, str(path), str(tail)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
