"""The local mark of a node's writer: it tells which of two databases with one identity is the copy.

It lies in the state directory, which is not copied with the file, and says which writer has lived beside it.
A file that was put back from an older copy needs none: svc does not open it beside the state directory of the
newer one, and without that directory, members that have seen later commits tell.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from svc.errors import ServiceUnavailable
from svc.plugin import Database, StateFile, hash_content

__all__ = ["begun_return", "has_mark", "name_of_place", "note_return", "only_return", "write_mark"]


class _Mark(Struct, frozen=True):
    """The writer that lives beside this state directory."""

    writer: int


class _Return(Struct, frozen=True):
    """The writer whose return has begun, and whether its log is an older copy."""

    writer: int
    distrusts_log: bool


def write_mark(database: Database, writer: int) -> None:
    """Says that a writer lives beside this state directory."""
    _file(database).beat(_Mark(writer))


def has_mark(database: Database, writer: int) -> bool:
    """Whether a writer has lived beside this state directory."""
    found = _file(database).read()
    return found is not None and found[0].writer == writer


def name_of_place(database: Database) -> str:
    """Returns a name of this state directory that no other one has, and no copy of it, on any machine."""
    found = database.state_directory.stat()
    with open("/proc/sys/kernel/random/boot_id", "rb") as boot_id:
        return hash_content(b"%b %d %d" % (boot_id.read(), found.st_dev, found.st_ino)).hex()


def note_return(database: Database, writer: int, *, distrusts_log: bool) -> None:
    """Says that the return of a writer begins: the member that lets it in removes the writer."""
    _return_file(database).beat(_Return(writer, distrusts_log))


def begun_return(database: Database, writer: int) -> bool | None:
    """Whether the log was an older copy when the return of a writer began; None: it has not begun."""
    found = _return_file(database).read()
    return found[0].distrusts_log if found is not None and found[0].writer == writer else None


@contextmanager
def only_return(database: Database) -> Iterator[None]:
    """Lets one thread of one process at a time keep aside what a member holds.

    Raises:
        ServiceUnavailable: another one is at it.
    """
    directory = database.state_directory / "sync"
    directory.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(directory / "return.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServiceUnavailable("This node is joining the cluster already.", retry_after=1) from None
        yield
    finally:
        os.close(descriptor)


def _return_file(database: Database) -> StateFile[_Return]:
    return StateFile(database.state_directory / "sync" / "return.json", _Return)


def _file(database: Database) -> StateFile[_Mark]:
    return StateFile(database.state_directory / "sync" / "mark.json", _Mark)
