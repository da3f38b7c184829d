"""A process whose clock is moved: writes, makes snapshots, and runs the job of retention.

Reads a line for each step, and answers with a line: the present time, and what snapshots there were made and
are left.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from svc.plugin import Database
from svc_versions.documents import read_state
from svc_versions.lifecycle import change_lifecycle
from svc_versions.models import LifecycleChange, RetentionChange
from svc_versions.retention import RetentionJob
from svc_versions.snapshots import add_safety_snapshot, create_snapshot, list_snapshots


@dataclass
class Context:
    """What a job gets."""

    database: Database
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("five years"))
    configuration: Any = None
    is_stopping = False


def step(database: Database, number: int, change: dict[str, int]) -> dict[str, Any]:
    """Writes a file, makes a snapshot of each kind, and runs the job."""
    if change:
        change_lifecycle(database, LifecycleChange(snapshot_retention=RetentionChange(**change)))
    with database.transaction() as transaction:
        transaction.put(("a",), str(number).encode())
    manual, _ = create_snapshot(database, f"manual-{number}")
    with database.transaction() as transaction:
        system = read_state(database)[2]
        automatic = add_safety_snapshot(database, system, transaction, actor=None, reason="a test")
        transaction.put(("b",), str(number).encode())
    made = {one.name: one.created_ms for one in list_snapshots(database)}
    RetentionJob().run(Context(database))
    return {
        "now_ms": time.time_ns() // 1_000_000,
        "made": {name: made[name] for name in (manual.name, automatic)},
        "left": [one.name for one in list_snapshots(database)],
    }


def main() -> None:
    """Does a step for each line, until there are no more."""
    with Database(sys.argv[1]) as database:
        for number, line in enumerate(sys.stdin):
            answer = step(database, number, json.loads(line))
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
