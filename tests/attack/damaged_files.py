"""A small database whose every byte is known, damaged in any way; and the law that must hold afterwards.

The law: whoever looks is told, or nothing acknowledged is lost. A byte that changed is never called well.
Other bytes than those that were written are never served. What was proved to be durable is never given up
silently, and what an opening cuts lies beside the file.
"""

from __future__ import annotations

import random
import shutil
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from crash.boots import another_boot
from svc.database import Database
from svc.errors import CorruptRecord, ForeignFile, SvcError, UnsupportedFormat
from svc.log import FIRST
from svc_maintenance.verification import verify

__all__ = ["BESIDE", "Made", "check_law", "damage", "make"]

BESIDE = (
    "nothing",
    "its directory",
    "its directory, in another boot",
    "an older directory",
    "an older directory, in another boot",
)
"""What lies beside the damaged file."""

Files = dict[tuple[str, ...], bytes]
REFUSALS = (CorruptRecord, ForeignFile, UnsupportedFormat)
OLDER = 2
"""How many commits the older directory knows."""


@dataclass(frozen=True, slots=True)
class Made:
    """The database before it is damaged.

    Attributes:
        path: the file; it stays the same file, whatever is written into it.
        content: its bytes.
        states: for each commit the offset behind it, and the files after it; the empty state first.
        ends: where a file may end without anybody being able to see that it was longer.
    """

    path: Path
    content: bytes
    states: list[tuple[int, Files]]
    ends: set[int]

    @property
    def files(self) -> Files:
        """The files that were acknowledged."""
        return self.states[-1][1]

    @property
    def last(self) -> int:
        """Number of the last commit."""
        return len(self.states) - 1


def make(path: Path) -> Made:
    """Makes a file of a few kilobytes: five commits in three sessions, each closed in order."""
    states: list[tuple[int, Files]] = [(FIRST, {})]
    ends = {FIRST}
    chance = random.Random("the content")
    for session in (range(OLDER), range(OLDER, 4), range(4, 5)):
        with Database(path) as database:
            for number in session:
                with database.transaction() as transaction:
                    transaction.put(("d", f"f{number}"), chance.randbytes(21 + number))
                    if number == 3:
                        transaction.delete(("d", "f0"))
                head = database.head()
                states.append((head.commit_end, files_of(database)))
                ends.add(head.commit_end)
        ends.add(path.stat().st_size)
        if session.stop == OLDER:
            shutil.copytree(f"{path}.d", older_directory(path))
    shutil.copytree(f"{path}.d", whole_directory(path))
    return Made(path, path.read_bytes(), states, ends)


def older_directory(path: Path) -> Path:
    return path.with_name("older.d")


def whole_directory(path: Path) -> Path:
    return path.with_name("whole.d")


def files_of(database: Database) -> Files:
    version = database.at()
    return {path: version.read_all(entry) for path, entry in version.walk(files_only=True)}


def damage(made: Made, content: bytes, beside: str) -> AbstractContextManager[None]:
    """Writes damaged content into the file and lays something beside it; returns the boot to open it in."""
    path = made.path
    for saved in path.parent.glob(f"{path.name}.cut-*"):
        saved.unlink()
    with open(path, "r+b") as file:
        file.truncate(0)
        file.write(content)
    shutil.rmtree(f"{path}.d", ignore_errors=True)
    if beside != "nothing":
        shutil.copytree(older_directory(path) if "older" in beside else whole_directory(path), f"{path}.d")
    return another_boot() if "another boot" in beside or beside == "nothing" else nullcontext()


def proven_by(made: Made, beside: str) -> int:
    """Number of the last commit that what lies beside the file proves to have been durable."""
    if beside == "nothing":
        return 0
    return OLDER if "older" in beside else made.last


def check_law(made: Made, content: bytes, beside: str, *, is_seen: bool) -> str:
    """Looks at a damaged file, then opens it for writing; returns what came of that.

    Args:
        made: what it was.
        content: what it is.
        beside: what lies beside it.
        is_seen: whether there is anything by which the damage can be seen.
    """
    with damage(made, content, beside):
        told = look(made, content)
        assert told or not is_seen, "called well"
        return write(made, content, proven_by(made, beside), is_seen)


def look(made: Made, content: bytes) -> bool:
    """Opens the file for reading; returns whether something was said to be wrong."""
    try:
        database = Database(made.path, read_only=True)
    except REFUSALS:
        return True
    with database:
        check_files(made, database)
        told = not verify(database).ok
    assert made.path.read_bytes() == content, "changed by a reader"
    return told


def check_files(made: Made, database: Database) -> bool:
    """Whether all that was acknowledged is there; makes sure that nothing else is."""
    version = database.at()
    written = {(path, content) for _, files in made.states for path, content in files.items()}
    is_whole = True
    for path, expected in made.files.items():
        try:
            entry = version.get(path)
            found = None if entry is None else version.read_all(entry)
        except SvcError:
            found = None
        assert found is None or (path, found) in written, "other bytes were served"
        is_whole &= found == expected
    return is_whole


def write(made: Made, content: bytes, proven: int, is_seen: bool) -> str:
    """Opens the file for writing; returns what came of it."""
    path = made.path
    try:
        database = Database(path, create=False)
    except REFUSALS:
        assert path.read_bytes() == content, "changed, and refused"
        return "refused"
    with database:
        kept = path.read_bytes()
        saved = list(path.parent.glob(f"{path.name}.cut-*"))
        cut = content[len(kept) :]
        assert content.startswith(kept), "changed before the cut"
        assert [one.read_bytes() for one in saved] == ([cut] if any(cut) else []), "cut and not saved"
        number = database.head().sequence
        assert number >= proven, "a durable commit was given up"
        is_whole = check_files(made, database)
        report = verify(database)
        if number == made.last:
            assert is_whole or not report.ok, "lost, and called well"
        elif is_seen and any(cut):
            assert not report.ok or saved[0].name.endswith(".unfinished"), "cut, and called well"
        try:
            with database.transaction() as transaction:
                transaction.put(("after",), b"it goes on")
        except CorruptRecord:
            assert not report.ok, "the directory cannot be written, and is called well"
    if number < made.last:
        return "cut"
    return "whole" if is_whole else "named"
