"""How a node joins anew that was removed, or whose file is an older copy: with all that it has.

It takes a new writer, copies what a member holds beside its own, decides for each of its registers what
becomes of it (``svc_sync.joining.carry_over``), and takes over the outcome in one transaction. Until then it
is what it was; if it is interrupted, it begins anew, and what is here does not travel again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from svc.errors import Conflict, CorruptRecord, NotFound
from svc.plugin import Database, Hash, Path, attempt
from svc_sync.cluster import Horizons, Member
from svc_sync.exchange.commits import Snapshot, stamp
from svc_sync.exchange.documents import rule_of
from svc_sync.exchange.links import Link
from svc_sync.exchange.marks import note_return, only_return, write_mark
from svc_sync.exchange.membership import note_peers, read_admission
from svc_sync.exchange.reading import leaf_of
from svc_sync.exchange.records import NodeRecord, new_identity
from svc_sync.exchange.seen_cluster import SeenCluster, pages_of, see_cluster
from svc_sync.exchange.store import RegisterStore
from svc_sync.exchange.taking_over import TakeOver
from svc_sync.exchange.trees import has_version
from svc_sync.joining import carry_over, may_return_through
from svc_sync.models import Admission, JoinRequest
from svc_sync.registers import Register
from svc_sync.scopes import is_of_user
from svc_sync.tree import value_of
from svc_sync.values import Value

__all__ = ["rejoin"]

_TRIES = 3
_MOST_NOTED = 500_000
"""Of so many changes in the log it is kept in memory what they have touched: some 50 MB."""


def rejoin(
    database: Database,
    link: Link,
    address: str,
    *,
    distrusts_log: bool,
    is_copy: bool = False,
    own_address: str = "",
    label: str = "",
) -> NodeRecord:
    """Makes this node a member with a new writer, that brings all that the cluster lacks. Blocks; commits.

    Args:
        database: of this node.
        link: to the member that lets it in.
        address: of that member.
        distrusts_log: whether the log is an older copy: others may know other writes of its times.
        is_copy: whether another database has this node's identity: then it gets an id of its own.
        own_address: where members reach this node; empty: they can't.
        label: of this node.

    Raises:
        Conflict: the member lacks something that this node has forgotten, or belongs to another cluster.
        ServiceUnavailable: this node is returning already, by another thread or process.
    """
    for number in range(_TRIES):
        try:
            with only_return(database):
                return _rejoin(database, link, address, distrusts_log, is_copy, own_address, label)
        except (NotFound, CorruptRecord):
            # A content or version was gone at the member before it travelled, or here, by a collection.
            if number == _TRIES - 1:
                raise
    raise AssertionError


def _rejoin(
    database: Database,
    link: Link,
    address: str,
    distrusts_log: bool,
    is_copy: bool,
    own_address: str,
    label: str,
) -> NodeRecord:
    before = stamp(database, level=True)
    old = before.node
    if len(before.state.cluster.members) == 1:
        # What was written while nobody else was there has no registers: nobody could say what became of it.
        raise Conflict(
            "This node knows of no other member: it can't bring what it has. Join with an empty one."
        )
    member = before.state.cluster.members.get(old.writer)
    former = () if distrusts_log else (*(member.former if member is not None else ()), old.writer)
    request = JoinRequest(
        node_id=new_identity() if is_copy else old.node_id,
        writer=new_identity(),
        address=own_address,
        label=label,
        former=former,
        sync_paths=before.scope.globs,
    )
    assert request.writer is not None
    note_return(database, old.writer, distrusts_log=distrusts_log)
    admission = link.call("/sync/join", request, Admission)
    said, root = read_admission(admission, request.writer)
    if admission.cluster_id != old.cluster_id:
        raise Conflict("The member belongs to another cluster.")
    if not may_return_through(before.state.cluster, said.known):
        raise Conflict("The member lacks what this node has forgotten: join anew through another one.")
    seen, trees = see_cluster(
        database,
        link,
        before.tree,
        Member(request.writer, request.node_id, before.scope.globs, former),
        root,
        said.cluster.without(before.state.cluster.removed),
        old.cluster_id,
    )
    seen.vt = max(seen.vt, said.vt)
    distrusted = (old.writer,) if distrusts_log else ()
    node = replace(old, node_id=request.node_id, writer=request.writer, copying=None)
    carrying = _Carrying(database, seen, node.writer, distrusted)
    attempt(TakeOver(database, seen, trees, root, node, carrying, distrusted), "This node")
    write_mark(database, node.writer)
    trees.let_go()
    note_peers(database, admission, address, node.node_id)
    return node


class _Step(NamedTuple):
    """What a commit has touched, and the tree after it."""

    sequence: int
    root: Hash
    touched: frozenset[Path]


class _Carrying:
    """Decides for each of this node's registers, or for those that have changed since, what becomes of it."""

    def __init__(
        self, database: Database, seen: SeenCluster, writer: int, distrusted: Collection[int]
    ) -> None:
        self._database = database
        self._seen = seen
        self._writer = writer
        self._distrusted = distrusted
        self._histories = _Histories(database)

    def __call__(self, snapshot: Snapshot, since: Snapshot | None) -> Iterator[dict[Path, Register | None]]:
        """Yields what is brought, some at a time; see ``Decide``."""
        registers = snapshot.registers
        rows: Iterable[tuple[Path, Register | None]] = registers.items()
        if since is not None:
            rows = ((path, registers.get(path)) for path in registers.changed_since(since.registers))
        horizons, theirs = Horizons(self._seen.cluster), self._seen.registers()
        for page in pages_of(rows):
            paths = [path for path, _ in page]
            self._histories.look_at(paths, snapshot.state.sequence, keeps=since is not None)
            made = {
                path: None if register is None else self._carry(snapshot, horizons, theirs, path, register)
                for path, register in page
                if rule_of(path) is not None
            }
            yield {path: register for path, register in made.items() if register or since is not None}

    def _carry(
        self,
        snapshot: Snapshot,
        horizons: Horizons,
        theirs: RegisterStore,
        path: Path,
        register: Register,
    ) -> Register | None:
        rule = rule_of(path)
        assert rule is not None
        return carry_over(
            theirs.get(path),
            self._seen.shown(path, theirs),
            register,
            writer=self._writer,
            known=self._seen.known,
            seen=snapshot.state.known,
            forgotten=horizons.of(path),
            stood=self._histories.of(path),
            distrusted=self._distrusted,
            rule=rule,
        )


class _Histories:
    """What has stood at paths here: read when it is first asked for, of all paths of a page at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._paths: Collection[Path] = ()
        self._needed = 0
        self._read: dict[Path, int] = {}
        self._found: dict[Path, list[Value]] = {}
        self._steps: list[_Step] = []
        self._noted = 0
        self._until = 0

    def look_at(self, paths: Collection[Path], sequence: int, *, keeps: bool) -> None:
        """Says which paths come next, and up to which commit; whether what was read of others is kept."""
        self._paths, self._needed = paths, sequence
        if not keeps:
            self._read.clear()
            self._found.clear()

    def of(self, path: Path) -> Collection[Value]:
        """Returns what stood at a path."""
        return _Stood(self, path)

    def values(self, path: Path) -> list[Value]:
        """Returns what stood at a path, read by now."""
        if self._read.get(path, -1) < self._needed:
            new = [one for one in self._paths if one not in self._read]
            known = [one for one in self._paths if -1 < self._read.get(one, -1) < self._needed]
            for paths in (new, known):
                if paths:
                    self._read_behind(min(self._read.get(one, 0) for one in paths), paths)
        return self._found.get(path, [])

    def _read_behind(self, sequence: int, paths: Collection[Path]) -> None:
        for step in self._steps_behind(sequence):
            found = [
                path
                for path in paths
                if is_of_user(path) and any(path[:depth] in step.touched for depth in range(len(path) + 1))
            ]
            if found and has_version(self._database, step.root):
                version = self._database.version_of(step.root)
                for path in found:
                    self._found.setdefault(path, []).append(value_of(leaf_of(version.get(path))))
        self._read.update(dict.fromkeys(paths, self._needed))

    def _steps_behind(self, sequence: int) -> Iterator[_Step]:
        """Yields what commits have touched; it is asked often, so of the first in the log that is kept."""
        yield from self._steps[bisect_right(self._steps, sequence, key=lambda step: step.sequence) :]
        is_full = self._noted >= _MOST_NOTED
        for commit in self._database.commits(max(sequence, self._until) if is_full else self._until):
            if not is_full:
                self._until = commit.sequence
            if commit.root == commit.parent_root:
                continue
            touched = frozenset(change.path for one in commit.transactions for change in one.changes)
            step = _Step(commit.sequence, commit.root, touched)
            if not is_full:
                self._steps.append(step)
                self._noted += len(touched)
                is_full = self._noted >= _MOST_NOTED
            if step.sequence > sequence:
                yield step


class _Stood(Collection[Value]):
    def __init__(self, histories: _Histories, path: Path) -> None:
        self._histories = histories
        self._path = path

    def __contains__(self, value: object) -> bool:
        return value in self._histories.values(self._path)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._histories.values(self._path))

    def __len__(self) -> int:
        return len(self._histories.values(self._path))
