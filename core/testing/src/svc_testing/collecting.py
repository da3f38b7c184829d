"""A collection in the tests' own words: what it leaves, without the way there.

It keeps the law of collections (docs/decisions/026-garbage-collection.md) in the simplest way that there is,
so that tests of what comes after one need none of its machinery, and can put one anywhere.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from svc.database import Database
    from svc.hashing import Hash

__all__ = ["live_objects", "simulate_collection"]


def simulate_collection(database: Database, horizon: int | None = None) -> int:
    """Commits a horizon, and makes the database forget every object that no available version holds.

    Args:
        database: open for writing; nobody else may be in the middle of a write.
        horizon: number of the first commit whose tree stays; None is HEAD's. Never moves back.

    Returns:
        How many objects were forgotten.
    """
    wanted = database.head().sequence if horizon is None else horizon
    state = {"horizon": max(wanted, database.horizon()), "pending": False}
    with database.transaction(message="collection") as transaction:
        transaction.put_system(("collection",), json.dumps(state).encode())
    live = live_objects(database)
    dead = [hash for hash, _ in database.objects.index.objects() if hash not in live]
    database.objects.index.remove(dead)
    database.drop_caches()
    return len(dead)


def live_objects(database: Database) -> set[Hash]:
    """Returns the objects of all versions that are available, by a walk of each."""
    from svc.tree import EntryKind, Inner

    live: set[Hash] = set()
    waiting: list[Hash] = [root for _, root in database.refs()]
    for sequence in database.available_commits():
        commit = database.commit(sequence)
        waiting += [commit.root, commit.system_root, *commit.ref_roots()]
    objects = database.objects
    while waiting:
        hash = waiting.pop()
        if hash in live:
            continue
        live.add(hash)
        node = objects.read_node(hash)
        if isinstance(node, Inner):
            waiting += node.children()
            continue
        for _name, entry in node.items():  # noqa: PERF102 - a leaf has no values()
            if entry.kind is EntryKind.DIRECTORY:
                waiting.append(entry.hash)
            elif entry.kind is EntryKind.FILE:
                live.add(entry.hash)
                if entry.record is not None:
                    live.add(entry.record)
                    live.update(objects.read_record(entry.record).chunks)
    return live
