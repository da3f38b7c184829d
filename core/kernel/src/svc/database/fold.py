"""Folds waiting transactions into commits: values in, framed records out; nothing is written here.

Transactions that do not touch each other's paths share one commit. One that touches a path which the
commit has changed already closes it and opens the next, so that every acknowledged state is a version
of its own; all commits of a fold still share one append and one sync.
"""

from __future__ import annotations

from itertools import chain, groupby
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field
from msgspec.structs import replace

from svc.clock import now_ms
from svc.database.commit import Commit, DatabaseTotals, PathChange, TransactionRecord
from svc.database.head import Head
from svc.database.operations import (
    Operation,
    OperationResult,
    Put,
    SetRef,
    growth_of,
    is_plain_put,
    put_all,
)
from svc.database.origins import Origin
from svc.database.references import HEAD_NAME, reference_path
from svc.errors import NotFound, PayloadTooLarge, SvcError
from svc.hashing import Hash, ObjectKind, hash_object
from svc.limits import MAXIMUM_TREE_ENTRIES
from svc.log import encode_record
from svc.objects.key_index import PackedPlace, Place, unpack_places
from svc.objects.store import ObjectStore, PendingObjects, TreeStore
from svc.paths import Path
from svc.tree import EntryKind, WorkingTree, directory_entry, totals

if TYPE_CHECKING:
    from svc.database.committer import CommitRequest

__all__ = ["Fold", "FoldedCommit"]

# A member is read through its class for ten times the price.
_CHUNK, _COMMIT = int(ObjectKind.CHUNK), ObjectKind.COMMIT
_NO_RECOUNT = (0, 0)


class FoldedCommit(Struct, frozen=True, gc=False):
    """A commit that is ready to be appended.

    Attributes:
        records: framed, in the order in which they are appended; the commit's own is last.
        places: for each of them the hash and what its place will be but for the offset.
        placed: records that lie in the log already, and their packed places.
        chunks: how many of all these records are chunks.
    """

    commit: Commit
    hash: Hash
    records: list[bytes]
    places: list[tuple[Hash, Place]]
    placed: dict[Hash, PackedPlace]
    chunks: int


class _OpenCommit(Struct):
    pending: PendingObjects = field(default_factory=PendingObjects)
    transactions: list[TransactionRecord] = field(default_factory=list)
    requests: list[CommitRequest] = field(default_factory=list)
    footprints: dict[str, _Footprint] = field(default_factory=dict)
    surveyed: int = 0

    def survey(self) -> dict[str, _Footprint]:
        """Returns what each tree has been changed in; one transaction alone never pays for it."""
        for request in self.requests[self.surveyed :]:
            for operation in request.operations:
                if isinstance(operation, SetRef):
                    self._footprint(operation.name).add(())
                else:
                    footprint = self._footprint(request.ref)
                    for path in operation.touched():
                        footprint.add(path)
        self.surveyed = len(self.requests)
        return self.footprints

    def _footprint(self, ref: str) -> _Footprint:
        footprint = self.footprints.get(ref)
        if footprint is None:
            footprint = self.footprints[ref] = _Footprint()
        return footprint


class _Footprint:
    """The paths of one tree that a commit changes, and those above; the empty path for a moved ref."""

    __slots__ = ("_above", "_paths")

    def __init__(self) -> None:
        self._paths: set[Path] = set()
        self._above: set[Path] = set()

    def add(self, path: Path) -> None:
        self._paths.add(path)
        above = self._above
        while path:
            path = path[:-1]
            if path in above:
                break  # so are those above it
            above.add(path)

    def meets(self, path: Path) -> bool:
        """Whether a path, something above it or something below it is changed."""
        paths = self._paths
        if path in paths or (path and path in self._above):
            return True
        while path:
            path = path[:-1]
            if path in paths:
                return True
        return False


class Fold:
    """Applies transactions, one after the other, to the trees that HEAD names."""

    def __init__(
        self,
        objects: ObjectStore,
        head: Head,
        parent: tuple[Commit, Hash] | None,
        maximum_entries: int = MAXIMUM_TREE_ENTRIES,
    ) -> None:
        self._objects = objects
        self._head = head
        self._parent_hash = parent[1] if parent is not None else None
        self._totals = parent[0].totals if parent is not None else DatabaseTotals()
        self._sequence = head.sequence
        self._root = head.root
        self._system_root = head.system_root
        self.now_ms = max(now_ms(), head.time_ms)
        self._open = _OpenCommit()
        self._users = TreeStore(objects, self._open.pending)
        self._systems = TreeStore(objects, self._open.pending, system=True)
        self._trees: dict[str, WorkingTree] = {}
        self._maximum_entries = maximum_entries
        # Most entries that each tree can have: what is added is added up, and counted when it is too much.
        self._bounds: dict[str, int] = {}
        self._system_tree = WorkingTree(self._systems, self._system_root)
        self._folded: set[Hash] = set()
        self.commits: list[FoldedCommit] = []

    def add(self, request: CommitRequest) -> None:
        """Applies one transaction; when an operation fails, its error is the request's, and nothing stays.

        The error of a failing operation has its index in ``details["operation"]``. A transaction without
        operations brings objects only (chunks that a client uploads ahead). When this raises, an earlier
        transaction cannot be written: nothing of the fold may be used.
        """
        try:
            overlaps = bool(self._open.transactions) and self._overlaps(request)
        except Exception as error:  # noqa: BLE001
            request.error = error
            return
        if overlaps:
            self._close()
        try:
            results = self._apply(request)
        except Exception as error:  # noqa: BLE001
            request.error = error
            return
        self._open.pending.absorb(request.pending)
        if request.operations:
            self._open.transactions += _records_of(request)
        self._open.requests.append(request)
        if request.recount != _NO_RECOUNT:
            self._recount(*request.recount)
        request.results = results

    def _recount(self, chunks: int, chunk_bytes: int) -> None:
        self._totals = replace(
            self._totals,
            chunks=max(0, self._totals.chunks + chunks),
            chunk_bytes=max(0, self._totals.chunk_bytes + chunk_bytes),
        )

    def finish(self) -> None:
        """Closes the last commit."""
        if self._open.requests:
            self._close()

    def share_nodes(self) -> None:
        """Puts the nodes that the fold made into the database's cache, once they are committed."""
        self._users.share_fresh_nodes()
        self._systems.share_fresh_nodes()

    def _apply(self, request: CommitRequest) -> list[OperationResult]:
        user_tree = self._tree_of(request.ref)
        trees, bounds = dict(self._trees), dict(self._bounds)
        savepoints = (user_tree.savepoint(), self._system_tree.savepoint())
        results: list[OperationResult] = []
        try:
            for is_plain, run in groupby(request.operations, is_plain_put):
                operations = list(run)
                if is_plain and len(operations) > 1:
                    puts = cast("list[Put]", operations)
                    done = put_all(puts, self._tree_of(request.ref), self.now_ms)
                    if done is not None:
                        results += done
                        continue
                for operation in operations:
                    results.append(self._apply_one(request.ref, operation))
            # Files are counted together: a batch may have very many, and none of them makes many entries.
            growth = sum([len(one.path) for one in request.operations if type(one) is Put and not one.system])
            if growth:
                self._limit_entries(request.ref, self._tree_of(request.ref), growth)
        except Exception as error:
            if isinstance(error, SvcError):
                error.details.setdefault("operation", min(len(results), len(request.operations) - 1))
            self._trees, self._bounds = trees, bounds
            user_tree.rollback(savepoints[0])
            self._system_tree.rollback(savepoints[1])
            raise
        return results

    def _apply_one(self, ref: str, operation: Operation | SetRef) -> OperationResult:
        if isinstance(operation, SetRef):
            return self._set_ref(operation)
        if operation.system:
            return operation.apply(self._system_tree, self.now_ms)
        tree = self._tree_of(ref)
        result = operation.apply(tree, self.now_ms)
        if type(operation) is not Put:
            self._limit_entries(ref, tree, growth_of(operation, tree))
        return result

    def _limit_entries(self, ref: str, tree: WorkingTree, growth: int) -> None:
        """Raises PayloadTooLarge when a tree, to which so much was added at most, has too many entries.

        One that had too many before, under another limit, takes what does not make it larger.
        """
        if growth:
            bound = self._bounds[ref] + growth
            if bound > self._maximum_entries:
                bound = tree.count()
                if bound > self._count(self._root_of(ref)):
                    self._require_room(bound)
            self._bounds[ref] = bound

    def _require_room(self, count: int) -> int:
        maximum = self._maximum_entries
        if count > maximum:
            raise PayloadTooLarge(
                f"A tree has at most {maximum:,} entries; this would make {count:,}.", limit=maximum
            )
        return count

    def _count(self, root: Hash) -> int:
        below = totals(self._users, root)
        return below.files + below.directories + below.symlinks

    def _tree_of(self, ref: str) -> WorkingTree:
        tree = self._trees.get(ref)
        if tree is None:
            root = self._root_of(ref)
            tree = WorkingTree(self._users, root)
            self._trees[ref] = tree
            self._bounds[ref] = self._count(root)
        return tree

    def _ref_root(self, name: str) -> Hash:
        entry = self._system_tree.get(reference_path(name))
        if entry is None or entry.kind is not EntryKind.DIRECTORY:
            raise NotFound(f"There is no {name.partition('/')[0].rstrip('s')} of this name.", name=name)
        return entry.hash

    def _set_ref(self, operation: SetRef) -> OperationResult:
        """A ref moves before its tree is changed, so no working tree of it has edits here."""
        if operation.name == HEAD_NAME:
            operation.check(self._root)
            assert operation.root is not None, "HEAD always names a root"
            self._bounds[HEAD_NAME] = self._require_room(self._count(operation.root))
            self._trees[HEAD_NAME] = WorkingTree(self._users, operation.root)
            return OperationResult((), None, None)
        path = reference_path(operation.name)
        before = self._system_tree.get(path)
        operation.check(before.hash if before is not None else None)
        after = None
        root = operation.root if operation.source is None else self._root_of(operation.source)
        if root is None:
            self._system_tree.remove(path)
        else:
            if operation.source is None:
                self._require_room(self._count(root))
            after = directory_entry(self._users, root, self.now_ms)
            self._system_tree.put(path, after)
        self._trees.pop(operation.name, None)
        return OperationResult(path, before, after)

    def _root_of(self, ref: str) -> Hash:
        """The root of a ref before a transaction that moves refs: it begins a commit, so it is written."""
        return self._root if ref == HEAD_NAME else self._ref_root(ref)

    def _overlaps(self, request: CommitRequest) -> bool:
        """Whether the transaction touches what the open commit has changed, or changes a ref."""
        footprint = self._open.survey().get(request.ref)
        for operation in request.operations:
            if isinstance(operation, SetRef):
                return True
            if footprint is not None:
                for path in operation.touched():
                    if footprint.meets(path):
                        return True
        return False

    def _close(self) -> None:
        opened, self._open = self._open, _OpenCommit()
        parent_root, parent_system_root = self._root, self._system_root
        self._write_trees()
        opened.transactions = [
            one if one.ref == HEAD_NAME else replace(one, root=self._ref_root(one.ref))
            for one in opened.transactions
        ]
        folded = self._frame(opened, parent_root, parent_system_root)
        for request in opened.requests:
            request.sequence = folded.commit.sequence
            request.version = self._version_of(request.ref)
            request.time_ms = self.now_ms
        self.commits.append(folded)
        self._parent_hash = folded.hash
        self._users.collect_into(self._open.pending)
        self._systems.collect_into(self._open.pending)

    def _write_trees(self) -> None:
        for ref, tree in list(self._trees.items()):
            root = tree.write(self.now_ms)
            if ref == HEAD_NAME:
                self._root = root
            elif root != self._ref_root(ref):
                self._system_tree.put(reference_path(ref), directory_entry(self._users, root, self.now_ms))
        self._system_root = self._system_tree.write(self.now_ms)

    def _version_of(self, ref: str) -> Hash:
        return self._root if ref == HEAD_NAME else self._ref_root(ref)

    def _frame(self, opened: _OpenCommit, parent_root: Hash, parent_system_root: Hash) -> FoldedCommit:
        records: list[bytes] = []
        places: list[tuple[Hash, Place]] = []
        chunks = chunk_bytes = 0
        pending = opened.pending
        # They may have been stored since they were made pending: by another process, or ahead.
        is_asked = pending.unknown_in is None or pending.unknown_in != self._objects.index.state()
        asked = chain(pending.records, pending.placed) if is_asked else pending.records
        stored = self._objects.known(asked)
        folded = self._folded
        for hash, (framed, place) in pending.records.items():
            if hash in pending.placed or hash in stored or hash in folded:
                continue
            records.append(framed)
            places.append((hash, place))
            if place.kind == _CHUNK:
                chunks += 1
                chunk_bytes += place.stored_length
        placed = pending.placed
        there_already = placed.keys() & (stored | folded)
        if there_already:
            placed = {hash: place for hash, place in placed.items() if hash not in there_already}
        ahead = list(unpack_places(placed.values()))
        sizes = [place[1] for place in ahead if place[3] == _CHUNK]
        chunks += len(sizes)
        chunk_bytes += sum(sizes)
        folded.update(pending.records, placed)
        self._totals = self._totals_after(chunks, chunk_bytes)
        self._sequence += 1
        commit = Commit(
            self._sequence,
            self._parent_hash,
            self.now_ms,
            self._root,
            self._system_root,
            parent_root,
            parent_system_root,
            min([place[0] for place in ahead], default=0),
            self._head.commit_end,
            self._totals,
            tuple(opened.transactions),
            any(request.begins_sweep for request in opened.requests),
            any(request.has_packs for request in opened.requests),
        )
        payload = commit.encode()
        hash = hash_object(_COMMIT, payload)
        records.append(encode_record(_COMMIT, hash, payload, time_ms=self.now_ms, system=True))
        places.append((hash, Place(0, len(payload), len(payload), _COMMIT, 1, 0)))
        return FoldedCommit(commit, hash, records, places, placed, chunks)

    def _totals_after(self, chunks: int, chunk_bytes: int) -> DatabaseTotals:
        below = totals(self._users, self._root)
        return DatabaseTotals(
            below.files,
            below.directories,
            below.symlinks,
            below.size,
            self._totals.chunks + chunks,
            self._totals.chunk_bytes + chunk_bytes,
        )


def _records_of(request: CommitRequest) -> list[TransactionRecord]:
    """What the log says of a transaction: what was made here, then what each origin brought."""
    if not request.origins:
        changes = tuple([operation.change() for operation in request.operations])
        return [TransactionRecord(request.actor, request.message, request.ref, changes)]
    parts: list[tuple[Origin | None, list[PathChange]]] = [(None, [])]
    for number, operation in enumerate(request.operations):
        origin = request.origins.get(number)
        if origin is not None and origin != parts[-1][0]:
            parts.append((origin, []))
        parts[0 if origin is None else -1][1].append(operation.change())
    return [
        TransactionRecord(
            request.actor if origin is None else origin.user,
            request.message if origin is None else origin.message,
            request.ref,
            tuple(changes),
        )
        for origin, changes in parts
        if changes
    ]
