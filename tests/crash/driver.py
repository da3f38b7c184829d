"""A process that works on a database until it is killed, and tells its journals on its output.

``python -m crash.driver DATABASE NAME SEED STEPS FAULT...``: each line is a JSON list, written at once: what
was begun comes before its commit, what was acknowledged after it. ``read_journals`` makes journals of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from crash.journal import Change, Journal

__all__ = ["read_journals", "start_driver"]

WRITERS = 4
TESTS = Path(__file__).parents[1]


def start_driver(database: Path, name: str, seed: int, steps: int, *faults: str) -> subprocess.Popen[bytes]:
    """Starts a driver; its standard output is a pipe with the lines of its journals."""
    return subprocess.Popen(
        [sys.executable, "-m", "crash.driver", str(database), name, str(seed), str(steps), *faults],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=TESTS,
        bufsize=0,
    )


def read_journals(output: bytes) -> list[Journal]:
    """Returns the journals that a driver's lines make; a line that its death tore is of no matter."""
    journals: dict[str, Journal] = {}
    for line in output.split(b"\n")[:-1]:
        name, event, change, version = json.loads(line)
        journal = journals.setdefault(name, Journal(name))
        if event == "begin":
            journal.begin(change)
        elif event == "acknowledge":
            journal.acknowledge(version)
        else:
            journal.refuse()
    return list(journals.values())


def main(path: str, name: str, seed: str, steps: str, *faults: str) -> None:
    """Works; faults are set once the database is open."""
    from crash.workload import Writer, run_writers
    from svc.database import Database
    from svc_testing.faults import Fault, inject

    def tell(writer: Writer, event: str, change: Change) -> None:
        line = json.dumps([writer.journal.name, event, dict(change), writer.journal.version])
        os.write(1, line.encode() + b"\n")

    with Database(path, create=False) as database:
        writers = [Writer(database, f"{name}{number}", int(seed), tell) for number in range(WRITERS)]
        with inject(*map(Fault.parse, faults)):
            run_writers(writers, int(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
