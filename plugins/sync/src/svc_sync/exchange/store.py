"""The registers in the system tree, and beside them which of them are recent.

The register of ``/a/b`` is the file ``sync/registers/a/b/<U+0001>``: no segment of a path is this name, and
it stands before all of them, so a walk meets registers in the order of their paths. It also stands for the
empty name with which the paths of registers begin that are not of the user tree.
``sync/recent/<writer>/<vt>-<hash>`` is a link to the path of each register that has seen this write of the
writer last: what somebody does not know is read from a name on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from svc.plugin import Entry, EntryKind, Path, Transaction, Version, hash_content
from svc_sync.encoding import decode_register, encode_register
from svc_sync.registers import Register, Row
from svc_sync.scopes import Scope, is_of_user, parse_register_path, register_path_text

__all__ = [
    "MADE",
    "OWN",
    "REGISTERS",
    "RETURNING",
    "SEEN",
    "Places",
    "RegisterStore",
    "copy_directory",
    "copy_registers",
    "forget_returning",
    "put_registers",
]

REGISTERS: Path = ("sync", "registers")
RECENT: Path = ("sync", "recent")
RETURNING: Path = ("sync", "returning")
"""Holds the registers of a node that joins anew until they count."""
_LEAF = "\x01"
_MOST_KEPT = 10_000
"""So many registers are kept that were read."""
_EVERYTHING = Scope()
_FEW = 5_000
"""Up to so many recent writes are sorted; of more, the registers are walked in their order."""


class Places(NamedTuple):
    """Where registers and their recent writes are in the system tree."""

    registers: Path
    recent: Path


OWN = Places(REGISTERS, RECENT)
SEEN = Places((*RETURNING, "seen", "registers"), (*RETURNING, "seen", "recent"))
"""Those of the member through which a node joins anew."""
MADE = Places((*RETURNING, "made", "registers"), (*RETURNING, "made", "recent"))
"""Those that it will have."""


class RegisterStore:
    """The registers of one state of the system tree.

    Args:
        system: the state.
        places: where they are.
    """

    def __init__(self, system: Version, places: Places = OWN) -> None:
        self._system = system
        self._read: dict[Path, Register | None] = {}
        self.places = places

    def get(self, path: Path) -> Register | None:
        """Returns the register of a path; None where it has none."""
        if path not in self._read:
            if len(self._read) >= _MOST_KEPT:
                self._read.clear()
            entry = self._system.get(self.place(path))
            self._read[path] = None if entry is None else decode_register(self._system.read_all(entry))
        return self._read[path]

    def items(self, after: Path | None = None) -> Iterator[tuple[Path, Register]]:
        """Yields all registers in the order of paths, from behind a path."""
        for path, entry in self._walk(after):
            yield path, decode_register(self._system.read_all(entry))

    def changed_since(self, other: RegisterStore) -> Iterator[Path]:
        """Yields the paths whose registers are not as in another state; the cost follows how many."""
        for change in other._system.diff(self._system, self.places.registers):
            if change.path[-1] == _LEAF:
                yield self._named(change.path)

    def below(self, prefix: Path) -> Iterator[tuple[Path, Register]]:
        """Yields the registers below the path of one, in the order of paths."""
        place = (*self.places.registers, *_stored(prefix))
        if self._system.get(place) is not None:
            for found, entry in self._system.walk(place, files_only=True):
                yield self._named(found), decode_register(self._system.read_all(entry))

    def unknown_to(self, row: Row, after: Path | None = None, scope: Scope = _EVERYTHING) -> Iterable[Path]:
        """Returns the paths whose registers may have what a row does not know, in their order.

        Args:
            row: what somebody knows.
            after: the last path that it has got.
            scope: what it takes.
        """
        found: set[Path] = set()
        for count, path in enumerate(self._recent(row)):
            if count == _FEW:
                return (one for one in self._paths_of(scope, after) if scope.takes(one))
            if scope.takes(path):
                found.add(path)
        return sorted(path for path in found if after is None or path > after)

    def is_empty(self) -> bool:
        """Whether there is no register at all."""
        return next(self._walk(None), None) is None

    def removals(self, gone: Iterable[Path]) -> list[Path]:
        """Returns what to remove so that some registers go, and no directory of theirs stays empty."""
        places = {self.place(path) for path in gone}
        pending = set(places)
        while pending:
            place = max(pending, key=len)
            pending.discard(place)
            parent = place[:-1]
            if len(parent) <= len(self.places.registers) or parent in places:
                continue
            if all((*parent, name) in places for name, _ in self._system.entries(parent)):
                places.add(parent)
                pending.add(parent)
        return [place for place in sorted(places) if place[:-1] not in places]

    def _walk(self, after: Path | None) -> Iterator[tuple[Path, Entry]]:
        registers = self.places.registers
        if self._system.get(registers) is None:
            return
        behind = None if after is None else self.place(after)
        for place, entry in self._system.walk(registers, after=behind, files_only=True):
            yield self._named(place), entry

    def _paths_of(self, scope: Scope, after: Path | None) -> Iterator[Path]:
        if scope.is_whole:
            yield from (path for path, _ in self._walk(after))
            return
        for root in scope.roots:
            place = (*self.places.registers, *root)
            behind = None if after is None or after[: len(root)] != root else self.place(after)
            if (after is not None and root <= after and behind is None) or self._system.get(place) is None:
                continue
            for found, _ in self._system.walk(place, after=behind, files_only=True):
                yield self._named(found)

    def place(self, path: Path) -> Path:
        """Returns where the register of a path is."""
        return (*self.places.registers, *_stored(path), _LEAF)

    def recent_place(self, path: Path, writer: int, vt: int) -> Path:
        """Returns where it is noted that a register has seen a write of a writer last."""
        name = f"{vt:016x}-{hash_content(register_path_text(path).encode())[:16].hex()}"
        return (*self.places.recent, f"{writer:016x}", name)

    def _named(self, place: Path) -> Path:
        stored = place[len(self.places.registers) : -1]
        return ("", *stored[1:]) if stored[:1] == (_LEAF,) else stored

    def _recent(self, row: Row) -> Iterator[Path]:
        recent = self.places.recent
        if self._system.get(recent) is None:
            return
        for name, _ in self._system.entries(recent):
            known = row.get(int(name, 16), -1)
            behind = None if known < 0 else f"{known:016x}~"
            for _, entry in self._system.entries((*recent, name), after=behind):
                if entry.kind is EntryKind.SYMLINK and entry.target is not None:
                    yield parse_register_path(entry.target)


def put_registers(
    changes: Transaction, store: RegisterStore, registers: Mapping[Path, Register | None]
) -> None:
    """Stores registers in a transaction; None removes one. ``store`` is the state that it replaces."""
    gone: list[Path] = []
    # In a directory that goes away nothing may be put afterwards, so what goes is looked at as a whole.
    for path, register in registers.items():
        before = store.get(path)
        if register == before:
            continue
        old = {} if before is None else before.context
        new = {} if register is None else register.context
        for writer, vt in old.items():
            if new.get(writer) != vt:
                changes.delete_system(store.recent_place(path, writer, vt))
        for writer, vt in new.items():
            if old.get(writer) != vt:
                changes.link_system(store.recent_place(path, writer, vt), register_path_text(path))
        if register is None:
            gone.append(path)
    for place in store.removals(gone):
        changes.delete_system(place)
    for path, register in registers.items():
        if register is not None and register != store.get(path):
            changes.put_system(store.place(path), encode_register(register))


def _stored(path: Path) -> Path:
    return path if is_of_user(path) else (_LEAF, *path[1:])


def copy_registers(changes: Transaction, system: Version, source: Places, target: Places) -> None:
    """Makes the registers of one place those of another one, at once; ``system`` is the state it reads."""
    for old, new in zip(source, target, strict=True):
        copy_directory(changes, system, old, new)


def copy_directory(changes: Transaction, system: Version, source: Path, target: Path) -> None:
    """Makes a directory what another one is, at once; ``system`` is the state it reads."""
    if system.get(target) is not None:
        changes.delete_system(target)
    entry = system.get(source)
    if entry is not None:
        changes.put_system_entry(target, entry)


def forget_returning(changes: Transaction, system: Version) -> None:
    """Removes what a return has kept."""
    if system.get(RETURNING) is not None:
        changes.delete_system(RETURNING)
