"""The first pass: every record of the log, checked in stretches, in several processes where that pays.

A stretch begins at what looks like a record. If the one before it ends elsewhere (file content looked like a
record), it is checked again from there. So the result is the same as that of one process.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec

from svc.log import FIRST, Log
from svc.log.scanning import find_header
from svc_maintenance.verification.stretches import Stretch, check_stretch

__all__ = ["check_log"]

_STRETCH = 32 << 20
_WORTH_PROCESSES = 96 << 20
_MOST_PROCESSES = 4

Told = Callable[[int], None]
"""Called with the bytes that were checked so far."""


def check_log(log: Log, end: int, told: Told, *, processes: int | None = None) -> list[Stretch]:
    """Returns what was found between the first record and an offset, in order; blocks."""
    path = getattr(log.storage, "path", None)
    if processes is None:
        cores = len(os.sched_getaffinity(0))
        processes = min(cores, _MOST_PROCESSES) if end - FIRST >= _WORTH_PROCESSES else 1
    ahead: list[Stretch] = []
    if processes > 1 and isinstance(path, Path):
        bounds = _bounds(log, end)
        with open(path, "rb", buffering=0) as file:
            ahead = _in_processes(file.fileno(), log.database_id, bounds, end, processes, told)
    return _joined(log, ahead, end, told)


def _joined(log: Log, ahead: list[Stretch], end: int, told: Told) -> list[Stretch]:
    """Joins stretches that were checked ahead, and checks what is missing between them."""
    known = {stretch.start: stretch for stretch in ahead}
    starts = sorted(known, reverse=True)
    stretches: list[Stretch] = []
    position = FIRST
    while position < end:
        stretch = known.get(position)
        if stretch is None:
            while starts and starts[-1] <= position:
                starts.pop()
            stop = min(position + _STRETCH, end, starts[-1] if starts else end)
            stretch = check_stretch(log.storage.read, position, stop, end, log.database_id)
            told(stretch.end)
        stretches.append(stretch)
        position = stretch.end
    return stretches


def _bounds(log: Log, end: int) -> list[int]:
    """Returns offsets some megabytes apart at which records seem to begin, from the first one to the end."""
    found = [FIRST]
    while found[-1] + 2 * _STRETCH < end:
        following = find_header(log.storage.read, found[-1] + _STRETCH, end)
        if following is None:
            break
        found.append(following)
    return [*found, end]


def _in_processes(
    descriptor: int, database_id: bytes, bounds: list[int], end: int, processes: int, told: Told
) -> list[Stretch]:
    """Checks the parts between bounds in several processes; parts that one did not finish are missing."""
    work: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for pair in pairwise(bounds):
        work.put(pair)
    done: queue.SimpleQueue[Stretch | None] = queue.SimpleQueue()
    command = [
        sys.executable,
        "-m",
        "svc_maintenance.verification.stretch_worker",
        str(descriptor),
        database_id.hex(),
    ]
    decoder = msgspec.json.Decoder(Stretch)

    def drive() -> None:
        try:
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(descriptor,)
            ) as worker:
                assert worker.stdin is not None
                assert worker.stdout is not None
                while not work.empty():
                    start, stop = work.get_nowait()
                    worker.stdin.write(f"{start} {stop} {end}\n".encode())
                    worker.stdin.flush()
                    done.put(decoder.decode(worker.stdout.readline()))
                worker.stdin.close()
        except (OSError, queue.Empty, msgspec.DecodeError):
            pass  # what it did not do is done by the caller
        finally:
            done.put(None)

    drivers = [threading.Thread(target=drive, daemon=True) for _ in range(processes)]
    for driver in drivers:
        driver.start()
    found: list[Stretch] = []
    ended = 0
    while ended < processes:
        stretch = done.get()
        if stretch is None:
            ended += 1
            continue
        found.append(stretch)
        told(sum(one.end - one.start for one in found))
    for driver in drivers:
        driver.join()
    return found
