"""Merge: what a fork or a snapshot changed since a common base goes into HEAD or into another fork.

Names flow in; the base is found, the trees are merged in memory, and the difference to the target flows
into one commit, each path under the condition that it is still what the merge has seen. Writes to other
paths neither hold it up nor get lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from svc.database import Condition, Database, Transaction, Version, run_blocking
from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PreconditionFailed
from svc.hashing import Hash
from svc.paths import Path, format_path
from svc.tree import Entry, EntryKind, MergeConflict, MergeStrategy
from svc_versions.ancestry import common_ancestor, is_ancestor, root_at
from svc_versions.attempts import attempt
from svc_versions.documents import read_state
from svc_versions.forks import Fork, read_fork, write_fork_document, write_origin
from svc_versions.names import FORKS, HEAD, SNAPSHOTS, reference
from svc_versions.snapshots import Snapshot, read_snapshot
from svc_versions.tree_edits import Counts, Edit, merge_trees

__all__ = ["MergeOutcome", "Permit", "merge_versions"]

Permit = Callable[[list[Edit], Version, Version], None]
"""Raises when somebody may not make these edits; the versions are the target before and the source."""

Merged = tuple[str, int]
"""A state of a fork: its root in hex, and the number of the last commit when it was merged somewhere."""

_FORKS_NOTED = 200
_STATE = Condition(if_none_match=("*",))


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a merge: HEAD, a fork or a snapshot.

    Attributes:
        label: how people name it.
        root: root of its state.
        sequence: number of the newest commit of HEAD whose state it holds; None when nobody knows.
        fork: the fork, when it is one.
    """

    label: str
    root: Hash
    sequence: int | None
    fork: Fork | None = None

    @property
    def ref(self) -> str:
        """The ref that moves when it is a merge's target."""
        return HEAD if self.fork is None else reference(FORKS, self.fork.name)


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What a merge did.

    Attributes:
        source: what was merged.
        target: into what.
        version: the target's root after it.
        base: root of the common base; None when none is known, and everything that differs is a conflict.
        counts: files and links that were added, modified, deleted in the target.
        fast_forward: whether the target had not moved since the base, and took the source's state as it is.
        conflicts: how many conflicts the strategy decided.
        committed: whether anything was committed; not when there was nothing to merge, or in a dry run.
    """

    source: str
    target: str
    version: Hash
    base: Hash | None
    counts: Counts
    fast_forward: bool
    conflicts: int
    committed: bool


def merge_versions(
    database: Database,
    source: str,
    target: str = HEAD,
    strategy: MergeStrategy = "fail",
    *,
    message: str | None = None,
    actor: str | None = None,
    permit: Permit | None = None,
    shows: Callable[[Path], bool] | None = None,
    dry_run: bool = False,
    conflicts_listed: int = 1000,
) -> MergeOutcome:
    """Merges three-way; blocks for as long as the changes take, and for a commit.

    Args:
        database: the database.
        source: a fork or a snapshot, by its name or as ``forks/<name>`` or ``snapshots/<name>``; a fork comes
            first where both have the name. Or ``HEAD``.
        target: ``HEAD`` or a fork.
        strategy: what decides where both changed a path: ``fail`` refuses, ``ours`` keeps the target's
            side, ``theirs`` takes the source's.
        message: what for, for the log.
        actor: who does it.
        permit: is asked before anything is committed.
        shows: which conflicts may be shown; None: all.
        dry_run: say what would be done, and do nothing.
        conflicts_listed: how many conflicts the error lists.

    Raises:
        NotFound: there is no such fork or snapshot.
        InvalidInput: source and target are the same, or the target is a snapshot.
        Conflict: both changed the same paths, and the strategy is ``fail``: ``conflicts`` lists them.
    """

    def once() -> MergeOutcome:
        head_root, sequence, system = read_state(database)
        theirs = _find_source(database, system, source, head_root, sequence)
        ours = _find_target(database, system, target, head_root, sequence)
        if (ours.ref, ours.root) == (theirs.ref, theirs.root) and ours.label == theirs.label:
            raise InvalidInput("A version cannot be merged into itself.", field="into")
        base = _base(database, theirs, ours)
        merged = run_blocking(merge_trees, database, base, ours.root, theirs.root, strategy)
        if merged.conflicts and strategy == "fail":
            raise _refused(merged.conflicts, theirs, ours, base, shows, conflicts_listed)
        if permit is not None:
            permit(merged.edits, database.version_of(ours.root), database.version_of(theirs.root))
        outcome = MergeOutcome(
            theirs.label,
            ours.label,
            ours.root,
            base,
            Counts.of(merged.edits),
            ours.root == base and bool(merged.edits),
            len(merged.conflicts),
            committed=False,
        )
        if dry_run:
            return outcome
        text = message or f"merge {theirs.label} into {ours.label}"
        transaction = database.transaction(actor=actor, message=text, ref=ours.ref)
        if outcome.fast_forward:
            # Under the root itself: the target becomes the very state of the source.
            transaction.set_ref(ours.ref, theirs.root, expected=ours.root)
            if ours.ref == HEAD:
                write_origin(transaction, system, theirs.root, sequence)
        else:
            _queue(transaction, merged.edits)
        _note(database, transaction, system, theirs, ours, sequence)
        if not len(transaction):
            return outcome
        return replace(outcome, version=_commit(transaction), committed=True)

    return attempt(once, f"What {target} holds at the paths of the merge")


def _find_source(database: Database, system: Version, name: str, head_root: Hash, sequence: int) -> Side:
    if name == HEAD:
        return Side(HEAD, head_root, sequence)
    kind, _, rest = name.partition("/")
    for fork_name in [rest, name] if kind == FORKS and rest else [name]:
        fork = _fork_or_none(database, system, fork_name)
        if fork is not None:
            return _fork_side(database, fork)
    for snapshot_name in [rest, name] if kind == SNAPSHOTS and rest else [name]:
        snapshot = _snapshot_or_none(database, system, snapshot_name)
        if snapshot is not None:
            anchor = snapshot.base_sequence
            if anchor is None:
                anchor = database.commit_of(snapshot.root)
            return Side(f"snapshot {snapshot.name}", snapshot.root, anchor)
    raise NotFound("There is no fork or snapshot of this name.", field="from", name=name[:200])


def _find_target(database: Database, system: Version, name: str, head_root: Hash, sequence: int) -> Side:
    if name == HEAD:
        return Side(HEAD, head_root, sequence)
    kind, _, rest = name.partition("/")
    for fork_name in [rest, name] if kind == FORKS and rest else [name]:
        fork = _fork_or_none(database, system, fork_name)
        if fork is not None:
            return _fork_side(database, fork)
    if _snapshot_or_none(database, system, name.removeprefix(f"{SNAPSHOTS}/")) is not None:
        raise InvalidInput("A snapshot never changes; merge into HEAD or into a fork.", field="into")
    raise NotFound("There is no fork of this name.", field="into", name=name[:200])


def _fork_side(database: Database, fork: Fork) -> Side:
    """A fork, which also holds the state of HEAD that is its base, where that is one."""
    held = None if fork.base is None else database.commit_of(fork.base)
    return Side(f"fork {fork.name}", fork.root, max(held or 0, fork.base_sequence), fork)


def _fork_or_none(database: Database, system: Version, name: str) -> Fork | None:
    try:
        return read_fork(database, system, name)
    except NotFound:
        return None


def _snapshot_or_none(database: Database, system: Version, name: str) -> Snapshot | None:
    try:
        return read_snapshot(database, system, name)
    except NotFound:
        return None


def _base(database: Database, theirs: Side, ours: Side) -> Hash | None:
    """The newest state that both come of, as far as it can be known."""
    if theirs.fork is not None and ours.label == HEAD:
        return theirs.fork.base
    if ours.fork is not None and theirs.label == HEAD:
        return ours.fork.base
    found: tuple[int, Hash] | None = None
    if theirs.sequence is not None and ours.sequence is not None:
        common = common_ancestor(database, theirs.sequence, ours.sequence)
        if common is not None:
            found = common, root_at(database, common)
    if theirs.fork is not None and ours.fork is not None:
        for root, sequence in _common_forks(theirs.fork, ours.fork):
            if found is None or sequence >= found[0]:
                found = sequence, bytes.fromhex(root)
    return None if found is None else found[1]


def _common_forks(one: Fork, other: Fork) -> Iterator[Merged]:
    """The states of forks that both hold: of each other, and of any that were merged into both."""
    if (noted := one.merged.get(other.identity)) is not None:
        yield noted
    if (noted := other.merged.get(one.identity)) is not None:
        yield noted
    for identity in one.merged.keys() & other.merged.keys():
        yield min(one.merged[identity], other.merged[identity], key=_when)


def _when(noted: Merged) -> int:
    return noted[1]


def _note(
    database: Database, transaction: Transaction, system: Version, theirs: Side, ours: Side, sequence: int
) -> None:
    """Writes down what the two have in common now, for the next merge."""
    if ours.fork is None:
        if theirs.fork is not None and theirs.fork.base != theirs.root:
            write_fork_document(transaction, system, replace(theirs.fork, base=theirs.root))
        return
    fork = ours.fork
    if theirs.label == HEAD:
        changed = replace(fork, base=theirs.root, base_sequence=sequence)
    else:
        changed = _taken_over(database, ours, theirs)
        if theirs.fork is not None:
            changed = replace(changed, merged=_united(fork, theirs.fork, sequence))
    if changed != fork:
        write_fork_document(transaction, system, changed)


def _united(fork: Fork, other: Fork, sequence: int) -> dict[str, Merged]:
    """What a fork holds of all forks once another is merged into it: the newest of what either held."""
    united = dict(fork.merged)
    for identity, noted in other.merged.items():
        if identity != fork.identity:
            united[identity] = max(united.get(identity, noted), noted, key=_when)
    present = united.get(other.identity)
    if present is None or present[0] != other.root.hex():
        united[other.identity] = (other.root.hex(), sequence)
    newest = sorted(united.items(), key=lambda item: item[1][1])[-_FORKS_NOTED:]
    return dict(sorted(newest))


def _taken_over(database: Database, ours: Side, theirs: Side) -> Fork:
    """A fork that takes in a state which holds more of HEAD than it did itself holds that much too."""
    assert ours.fork is not None
    assert ours.sequence is not None, "a fork's is known"
    fork, held, sequence = ours.fork, ours.sequence, theirs.sequence
    if sequence is None or sequence <= held or not is_ancestor(database, held, sequence):
        return fork
    base = root_at(database, sequence) if fork.base == root_at(database, held) else fork.base
    return replace(fork, base=base, base_sequence=sequence)


def _queue(transaction: Transaction, edits: list[Edit]) -> None:
    """Adds edits to a transaction, each under the condition that the path holds what the merge has seen."""
    for edit in edits:
        condition = _STATE if edit.before is None else Condition(if_match=(edit.before.hash.hex(),))
        if edit.after is None:
            transaction.delete(edit.path, recursive=True, condition=condition)
            continue
        kinds = {edit.after.kind, edit.after.kind if edit.before is None else edit.before.kind}
        if len(kinds) == 2 and EntryKind.DIRECTORY in kinds:
            transaction.delete(edit.path, recursive=True, condition=condition)
            condition = _STATE
        transaction.put_entry(edit.path, edit.after, condition=condition)


def _commit(transaction: Transaction) -> Hash:
    try:
        return transaction.commit().version
    except (AlreadyExists, Conflict, NotFound) as error:
        # The paths have changed in a way that the conditions do not name: a parent that went, say.
        raise PreconditionFailed(error.message) from None


def _refused(
    conflicts: list[MergeConflict],
    theirs: Side,
    ours: Side,
    base: Hash | None,
    shows: Callable[[Path], bool] | None,
    listed: int,
) -> Conflict:
    shown = [one for one in conflicts if shows is None or shows(one.path)]
    return Conflict(
        f"{theirs.label} and {ours.label} both changed {len(conflicts)} paths; resolve them, or merge with "
        "the strategy 'ours' or 'theirs'.",
        base=None if base is None else base.hex(),
        ours=ours.root.hex(),
        theirs=theirs.root.hex(),
        conflict_count=len(conflicts),
        conflicts=[
            {
                "path": format_path(one.path),
                "kind": one.kind,
                "base": _shown(one.base),
                "ours": _shown(one.ours),
                "theirs": _shown(one.theirs),
            }
            for one in shown[:listed]
        ],
    )


def _shown(entry: Entry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    return {
        "hash": entry.hash.hex(),
        "size": entry.size,
        "updated_at": entry.updated_ms,
        "entry_type": int(entry.kind),
    }
