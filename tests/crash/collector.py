"""A process that collects until a fault kills it: ``python -m crash.collector DATABASE FAULT``."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["collect_with"]


def collect_with(path: Path, fault: str) -> None:
    """Collects in this process, in several steps of each kind although the database may be small."""
    from svc.database import Database, collect
    from svc.database.collection import garbage, plan
    from svc_testing.faults import Fault, inject

    garbage._BATCH, plan._RUNS_AT_ONCE = 16, 2
    with Database(path, create=False) as database, inject(Fault.parse(fault)):
        collect(database, wait_seconds=10)


if __name__ == "__main__":
    collect_with(Path(sys.argv[1]), sys.argv[2])
