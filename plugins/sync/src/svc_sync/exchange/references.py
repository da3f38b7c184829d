"""Snapshots and forks: which roots their names had when registers and refs agreed last.

``sync/references/<kind>/<name>`` notes of a ref the root that the register says, and the root that stands for
it here: of equal files a database may have another root, if an older version of svc has stored them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from svc.plugin import (
    Database,
    Hash,
    Path,
    SyncRule,
    Transaction,
    Version,
    read_record,
    reference_name,
    reference_path,
)
from svc_sync.cluster import Cluster
from svc_sync.exchange.documents import declared
from svc_sync.exchange.store import RegisterStore
from svc_sync.references import forget_loser, name_of_loser, shown_references
from svc_sync.registers import Dot, Register, write
from svc_sync.scopes import REFERENCES
from svc_sync.values import Reference, Value

__all__ = [
    "COPIED_REFERENCES",
    "NOTED",
    "Noted",
    "Planned",
    "References",
    "move_references",
    "note_copied",
    "note_references",
    "noted_of",
    "plan_all_references",
    "plan_references",
    "present_references",
    "put_references",
    "register_path",
    "stamp_reference",
    "take_copied_references",
]

NOTED: Path = ("sync", "references")
COPIED_REFERENCES: Path = ("sync", "copied-references")
"""What a first copy has brought, until it counts; of the same form."""
_MOST_LEVEL = 256
_level: set[tuple[Hash | None, Hash | None]] = set()
"""Pairs of the refs of a kind and of what is noted of them that were found to say the same."""


class Noted(Struct, frozen=True):
    """What is known of a ref.

    Attributes:
        root: what its register says.
        local: what the ref is here; its files are the same.
        of: the name whose register it is of: its own, or that which it lost.
        vt: of the write that lost; 0 where the name is its own.
        writer: the same.
    """

    root: Hash
    local: Hash
    of: str
    vt: int = 0
    writer: int = 0


class Planned(Struct, frozen=True):
    """A ref that is to change: what is noted of it, and what it shall be; None: no such ref."""

    kind: str
    name: str
    before: Noted | None
    root: Hash | None
    of: str = ""
    dot: Dot = Dot(0, 0)


class References:
    """The refs of one state of the system tree that are exchanged, as they were stamped.

    Args:
        system: the state.
    """

    __slots__ = ("_local", "_noted", "_system")

    def __init__(self, system: Version) -> None:
        self._system = system
        self._noted: dict[str, dict[str, Noted]] = {}
        self._local: dict[Hash, Hash] | None = None

    @staticmethod
    def kinds() -> list[str]:
        """Returns which kinds of refs are exchanged."""
        return [path[1] for path, rule in declared().exchanged() if rule is SyncRule.KEEP_LOSERS]

    def noted(self, kind: str) -> dict[str, Noted]:
        """Returns what is noted of the refs of a kind, by their names."""
        if kind not in self._noted:
            place = (*NOTED, kind)
            is_there = self._system.get(place) is not None
            walk = self._system.walk(place, files_only=True) if is_there else iter(())
            rows = ((path[2:], read_record(self._system, entry, Noted)) for path, entry in walk)
            self._noted[kind] = {_name(path): one for path, one in rows if one is not None}
        return self._noted[kind]

    def value(self, path: Path) -> Reference | None:
        """Returns what was stamped at the path of a register."""
        name = _name(path[2:])
        found = self.noted(path[2]).get(name)
        return Reference(found.root) if found is not None and found.of == name else None

    def rows(self, after: Path | None) -> Iterator[tuple[Path, Reference]]:
        """Yields what was stamped of all refs that have a register of their own, in the order of paths."""
        rows = [
            (register_path(kind, name), Reference(one.root))
            for kind in self.kinds()
            for name, one in self.noted(kind).items()
            if one.of == name
        ]
        return (row for row in sorted(rows, key=lambda row: row[0]) if after is None or row[0] > after)

    def local_root(self, root: Hash) -> Hash | None:
        """Returns what stands here for a root that a register says; None where nothing does."""
        if self._local is None:
            noted = [one for kind in self.kinds() for one in self.noted(kind).values()]
            self._local = {one.local: one.local for one in noted}
            self._local.update((one.root, one.local) for one in noted)
        return self._local.get(root)

    def changes(self, database: Database) -> Iterator[tuple[str, str, Noted | None, Hash | None]]:
        """Yields kind and name of each ref that is not what is noted: what that is, and its root."""
        for kind in self.kinds():
            entries = self._system.get(("refs", kind)), self._system.get((*NOTED, kind))
            pair = tuple(None if entry is None else entry.hash for entry in entries)
            if pair in _level:
                continue
            found = {ref.partition("/")[2]: root for ref, root in database.refs(kind, system=self._system)}
            noted = self.noted(kind)
            differ = [
                (kind, name, noted.get(name), found.get(name))
                for name in sorted(found.keys() | noted.keys())
                if name not in noted or noted[name].local != found.get(name)
            ]
            yield from differ
            if not differ:
                if len(_level) >= _MOST_LEVEL:
                    _level.clear()
                _level.add((pair[0], pair[1]))


def present_references(database: Database, system: Version) -> dict[tuple[str, str], Noted | None]:
    """Returns what is to be noted of all refs, as they are."""
    return {
        (kind, name): Noted(root, root, name)
        for kind in References.kinds()
        for name, root in ((ref.partition("/")[2], at) for ref, at in database.refs(kind, system=system))
    }


def register_path(kind: str, name: str) -> Path:
    """Returns the path of the register of a ref."""
    return (*REFERENCES, *reference_path(f"{kind}/{name}")[1:])


def stamp_reference(
    kind: str,
    name: str,
    noted: Noted | None,
    root: Hash | None,
    dot: Dot,
    register_at: Callable[[Path], Register | None],
) -> dict[Path, Register]:
    """Returns the registers that change because somebody made, moved or removed a ref here."""
    made: dict[Path, Register] = {}
    shown = None if noted is None else Reference(noted.root)
    if noted is not None and noted.of != name:
        # It stood under the name of a loser: that is settled, and what it was moved to is a ref like others.
        place = register_path(kind, noted.of)
        register = register_at(place)
        if register is not None:
            made[place] = forget_loser(register, Dot(noted.vt, noted.writer), dot)
        shown = None
        if root is None:
            return made
    place = register_path(kind, name)
    value = None if root is None else Reference(root)
    made[place] = write(made.get(place) or register_at(place), dot, value, shown)
    return made


def plan_references(
    references: References, store: RegisterStore, changed: Mapping[Path, Register], cluster: Cluster
) -> list[Planned]:
    """Returns which refs change when registers have, or when nodes are called otherwise."""
    planned: list[Planned] = []
    for kind in references.kinds():
        prefix = (*REFERENCES, kind)
        registers = dict(store.below(prefix))
        registers.update((path, one) for path, one in changed.items() if path[: len(prefix)] == prefix)
        if not registers:
            continue
        noted = references.noted(kind)
        rows = [(_name(path[2:]), one) for path, one in sorted(registers.items())]
        having = {name for name, _ in rows}
        stable = [(name, one.root) for name, one in noted.items() if one.of == name and name not in having]
        planned += _planned(kind, noted, stable, rows, cluster)
    return planned


def plan_all_references(
    references: References, registers: Mapping[Path, Register], stable: Mapping[Path, Value], cluster: Cluster
) -> list[Planned]:
    """Returns which refs change where all that is known of the system is another: of a node that joins anew.

    Args:
        references: what is noted here.
        registers: all that there are.
        stable: roots of the refs that have none, by the paths of registers.
        cluster: what is known of the members.
    """
    planned: list[Planned] = []
    for kind in references.kinds():
        prefix = (*REFERENCES, kind)
        rows = [
            (_name(path[2:]), one) for path, one in sorted(registers.items()) if path[: len(prefix)] == prefix
        ]
        having = {name for name, _ in rows}
        roots = [
            (_name(path[2:]), value.root)
            for path, value in stable.items()
            if path[: len(prefix)] == prefix and isinstance(value, Reference)
        ]
        rest = [(name, root) for name, root in roots if name not in having]
        planned += _planned(kind, references.noted(kind), rest, rows, cluster)
    return planned


def _planned(
    kind: str,
    noted: Mapping[str, Noted],
    stable: list[tuple[str, Hash]],
    rows: list[tuple[str, Register]],
    cluster: Cluster,
) -> Iterator[Planned]:
    shown = shown_references(stable, rows, lambda writer: _label(cluster, writer))
    for name in sorted(noted.keys() | shown.keys()):
        before = noted.get(name)
        if name not in shown:
            yield Planned(kind, name, before, None)
            continue
        root, of, dot = shown[name]
        dot = Dot(0, 0) if of == name else dot
        if before is None or (before.root, before.of, before.vt, before.writer) != (root, of, *dot):
            yield Planned(kind, name, before, root, of, dot)


def put_references(
    changes: Transaction, system: Version, planned: Iterable[tuple[Planned, Hash | None]]
) -> None:
    """Moves refs in a transaction, and notes that; with each its root here."""
    planned = list(planned)
    move_references(changes, system, planned)
    note_references(changes, noted_of(planned), system)


def move_references(
    changes: Transaction, system: Version, planned: Iterable[tuple[Planned, Hash | None]]
) -> None:
    """Moves refs in a transaction, on condition that they are what is noted; with each its root here."""
    for one, local in planned:
        ref = f"{one.kind}/{one.name}"
        before = None if one.before is None else one.before.local
        changes.set_ref(ref, local, expected=b"" if before is None else before)
        document = declared().documents(reference_path(ref))
        is_of_node = document is not None and declared().sync_rule(document) is SyncRule.NONE
        if document is not None and is_of_node and before != local and system.get(document) is not None:
            # What this node knows of the ref is of another one by now.
            changes.delete_system(document)


def noted_of(
    planned: Iterable[tuple[Planned, Hash | None]],
) -> dict[tuple[str, str], Noted | None]:
    """Returns what is to be noted of refs that change; with each its root here."""
    return {
        (one.kind, one.name): None
        if one.root is None or local is None
        else Noted(one.root, local, one.of, *one.dot)
        for one, local in planned
    }


def note_references(
    changes: Transaction,
    noted: Mapping[tuple[str, str], Noted | None],
    system: Version,
    at: Path = NOTED,
) -> None:
    """Notes what refs are; None for those that are gone."""
    for (kind, name), one in noted.items():
        place = (*at, *reference_path(f"{kind}/{name}")[1:])
        if one is not None:
            changes.put_system(place, msgspec.json.encode(one))
        elif system.get(place) is not None:
            changes.delete_system(place)


def note_copied(changes: Transaction, path: Path, root: Hash, local: Hash) -> None:
    """Notes of a first copy what the register of a ref says, and what stands for it here."""
    one = Noted(root, local, _name(path[2:]))
    changes.put_system((*COPIED_REFERENCES, *path[2:]), msgspec.json.encode(one))


def take_copied_references(changes: Transaction, system: Version, node_id: int) -> None:
    """Makes the refs that were copied. Those of this node that the cluster has not stay, and travel.

    One that the cluster has of another version gets the name of a loser.
    """
    copied = system.get(COPIED_REFERENCES)
    if system.get(NOTED) is not None:
        changes.delete_system(NOTED)
    if copied is None:
        return
    for path, entry in system.walk(COPIED_REFERENCES, files_only=True):
        one = read_record(system, entry, Noted)
        if one is None:
            continue
        own = system.get(reference_path(f"{path[2]}/{one.of}"))
        if own is not None and own.hash != one.local:
            name = name_of_loser(one.of, f"{node_id}-{own.hash.hex()[:12]}")
            changes.set_ref(f"{path[2]}/{name}", own.hash)
        changes.set_ref(f"{path[2]}/{one.of}", one.local)
    changes.put_system_entry(NOTED, copied)
    changes.delete_system(COPIED_REFERENCES)


def _label(cluster: Cluster, writer: int) -> str:
    for member in cluster.members.values():
        if writer == member.writer or writer in member.former:
            return str(member.node_id)
    return f"{writer:x}"


def _name(path: Path) -> str:
    """The name of a ref by its kind and segments."""
    return reference_name(("", *path)).partition("/")[2]
