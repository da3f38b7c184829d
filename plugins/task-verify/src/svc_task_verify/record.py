"""What the last verification found damaged: a file of the system tree, there only while something is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from svc.errors import SvcError

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["Found", "read_found", "write_found"]

PATH = ("task-verify", "found")


class Found(msgspec.Struct, frozen=True):
    """What is damaged.

    Attributes:
        at: when it was found, Unix milliseconds.
        count: how many paths and other things are damaged.
        paths: the first of the damaged paths.
        hashes: identities of the first damaged objects, in hex.
        regions: the first (begin, end) of the log where nothing can be read.
        commits: the first commits whose records can't be read.
    """

    at: int
    count: int
    paths: list[str]
    hashes: list[str]
    regions: list[tuple[int, int]]
    commits: list[int] = msgspec.field(default_factory=list)


def read_found(database: Database) -> Found | None:
    """Returns what the last verification found, or None. Reads the database."""
    system = database.system()
    entry = system.get(PATH)
    if entry is None:
        return None
    try:
        return msgspec.json.decode(system.read_all(entry), type=Found)
    except msgspec.MsgspecError:
        return None


def write_found(database: Database, found: Found | None, actor: str | None) -> None:
    """Keeps what was found; None says that nothing is damaged. Blocks: a commit, where anything changes."""
    try:
        before = database.system().get(PATH)
    except SvcError:
        before = None
    if found is None and before is None:
        return
    with database.transaction(actor=actor) as transaction:
        if found is None:
            transaction.delete_system(PATH)
        else:
            transaction.put_system(PATH, msgspec.json.encode(found))
