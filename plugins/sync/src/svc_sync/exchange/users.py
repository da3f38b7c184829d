"""Who made the writes that some member may not know yet: the users, who do not stand in registers.

All paths of a commit have one virtual time, and most commits one user: ``sync/users/<writer>/<vt>`` is a link
whose target is the user behind a slash. Where several users made a commit together, each path has one of its
own, ``<vt>-<hash of the path>``. What all members have merged is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from svc.errors import InvalidInput
from svc.plugin import Path, Transaction, TransactionRecord, Version, hash_content
from svc_sync.registers import Dot, Register, Row
from svc_sync.scopes import register_path_text

__all__ = [
    "USERS",
    "Write",
    "WriteUsers",
    "forget_users",
    "put_users",
    "read_users",
    "user_of_paths",
    "users_of_page",
]

USERS: Path = ("sync", "users")
_LONGEST_USER = 200
_LONGEST_LIST = 5_000


class Write(NamedTuple):
    """A write, or with an empty ``path`` all writes of one virtual time.

    Attributes:
        vt: virtual time.
        writer: who wrote it.
        path: the first bytes of the hash of its path.
    """

    vt: int
    writer: int
    path: bytes = b""

    @classmethod
    def of(cls, dot: Dot, path: Path | None = None) -> Write:
        """Returns the write of a path, or all writes of its time."""
        digest = b"" if path is None else hash_content(register_path_text(path).encode())[:16]
        return cls(dot.vt, dot.writer, digest)


class WriteUsers:
    """The users that are known in one state of the system tree; ``more`` are known beside them."""

    def __init__(self, system: Version, more: Mapping[Write, str] | None = None) -> None:
        self._system = system
        self._known: dict[Write, str | None] = dict(more or {})
        self._is_empty = system.get(USERS) is None

    def of(self, dot: Dot, path: Path) -> tuple[Write, str] | None:
        """Returns who made a write, and by which of the two forms that is known; None: it is not."""
        for write in (Write.of(dot), Write.of(dot, path)):
            user = self._get(write)
            if user is not None:
                return write, user
        return None

    def _get(self, write: Write) -> str | None:
        if write not in self._known:
            entry = None if self._is_empty else self._system.get(_place(write))
            self._known[write] = None if entry is None or entry.target is None else entry.target[1:]
        return self._known[write]


def user_of_paths(records: Iterable[TransactionRecord]) -> Callable[[Path], str | None]:
    """Returns what says who changed a path in some transactions: the last who named it, or what it is in."""
    named: dict[Path, tuple[int, str | None]] = {}
    for order, record in enumerate(records):
        for change in record.changes:
            named[() if change.kind == "ref" else change.path] = order, record.actor
            if change.source is not None:
                named[change.source] = order, record.actor

    def user_of(path: Path) -> str | None:
        places = (named.get(path[:depth]) for depth in range(len(path) + 1))
        return max((place for place in places if place is not None), default=(0, None), key=_order)[1]

    return user_of


def put_users(changes: Transaction, users: Mapping[Write, str]) -> None:
    """Notes who made writes."""
    for write, user in users.items():
        if _is_user(user):
            changes.link_system(_place(write), f"/{user}")


def forget_users(changes: Transaction, system: Version, known: Row, most: int) -> None:
    """Forgets users of writes that all members know, so many at most."""
    if system.get(USERS) is None:
        return
    for writer, _ in system.entries(USERS):
        last = f"{known.get(int(writer, 16), -1) + 1:016x}"
        for name, _ in system.entries((*USERS, writer)):
            if name >= last or most <= 0:
                break
            changes.delete_system((*USERS, writer, name))
            most -= 1


def users_of_page(rows: Iterable[tuple[Path, Register]], users: WriteUsers) -> dict[str, list[Write]]:
    """Returns who made the writes in the registers of a page."""
    found: dict[str, dict[Write, None]] = {}
    for path, register in rows:
        for dot in register.versions:
            known = users.of(dot, path)
            if known is not None:
                found.setdefault(known[1], {})[known[0]] = None
    return {user: list(writes) for user, writes in found.items()}


def read_users(said: Mapping[str, list[Write]]) -> dict[Write, str]:
    """Returns the users that another node names.

    Raises:
        InvalidInput: it says what no node says.
    """
    if sum(map(len, said.values())) > _LONGEST_LIST or not all(map(_is_user, said)):
        raise InvalidInput("Another node names users that can't be.")
    found = {write: user for user, writes in said.items() for write in writes}
    if any(write.vt < 0 or write.writer <= 0 or len(write.path) not in (0, 16) for write in found):
        raise InvalidInput("Another node names users of writes that can't be.")
    return found


def _place(write: Write) -> Path:
    name = f"{write.vt:016x}" + (f"-{write.path.hex()}" if write.path else "")
    return (*USERS, f"{write.writer:016x}", name)


def _is_user(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_USER and text.isprintable()


def _order(place: tuple[int, str | None]) -> int:
    return place[0]
