"""Merge: what a fork or a snapshot changed since a common base goes into HEAD or into another fork.

The trees are merged in memory. What then differs from the target is committed at once, each path on condition
that it still is what the merge has seen; so writes to other paths neither hold a merge up nor get lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PreconditionFailed, VersionCollected
from svc.plugin import (
    Database,
    Entry,
    EntryKind,
    Hash,
    MergeConflict,
    MergeStrategy,
    Path,
    Transaction,
    Version,
    attempt,
    format_path,
    run_blocking,
    same_content,
)
from svc_versions.ancestry import common_ancestor, is_ancestor, root_at
from svc_versions.documents import read_state
from svc_versions.forks import Fork, write_origin
from svc_versions.models import Resolution
from svc_versions.names import HEAD
from svc_versions.resolutions import resolve
from svc_versions.snapshots import Snapshot
from svc_versions.tree_edits import Counts, Edit, MergedTree, merge_trees

__all__ = ["MergeLimits", "MergeOutcome", "Permit", "merge_versions"]

Permit = Callable[[list[Edit], Version, Version], None]
"""Raises when somebody may not make these edits; the versions are the target before and the source."""

Merged = tuple[str, int]
"""A state of a fork: its root in hex, and the number of the last commit when it was merged somewhere."""

R = TypeVar("R", Fork, Snapshot)

_FORKS_NOTED = 200


class Side(Struct, frozen=True):
    """One side of a merge: HEAD, a fork or a snapshot. ``label`` is how people name it.

    ``sequence`` is of the newest commit of HEAD whose state it holds; None when nobody knows.
    """

    label: str
    root: Hash
    sequence: int | None
    fork: Fork | None = None

    @property
    def ref(self) -> str:
        """The ref that moves when it is a merge's target."""
        return HEAD if self.fork is None else self.fork.ref


class MergeOutcome(Struct, frozen=True):
    """What a merge did.

    Attributes:
        version: the target's root after it.
        base: root of the common base; None when none is known, and everything that differs is a conflict.
        counts: files and links that were added, modified, deleted in the target.
        fast_forward: whether the target had not moved since the base, and took the source's state as it is.
        conflicts: how many conflicts the strategy decided, of those that may be shown.
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


class MergeLimits(Struct, frozen=True):
    """How many conflicts the error of a merge lists, and how many directory nodes the merge may look at.

    A node counts as often as it is met; None: as many as differ.
    """

    conflicts_listed: int = 1000
    nodes: int | None = None


_NO_LIMITS = MergeLimits()


def merge_versions(  # noqa: PLR0913 - each says a thing of its own, by its name
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
    limits: MergeLimits = _NO_LIMITS,
    resolutions: Sequence[Resolution] = (),
) -> MergeOutcome:
    """Merges three-way; blocks for as long as the changes take, and for a commit.

    Args:
        database: the database.
        source: a fork or a snapshot, by its name or as ``forks/<name>`` or ``snapshots/<name>``; a fork comes
            first where both have the name. Or ``HEAD``.
        target: ``HEAD`` or a fork.
        strategy: what decides where both changed a path: ``fail`` refuses, ``ours`` keeps the target's side,
            ``theirs`` takes the source's.
        message: what for, for the log.
        actor: who does it.
        permit: is asked before anything is committed.
        shows: which conflicts may be shown; None: all.
        dry_run: say what would be done, and do nothing.
        limits: how much it may do and say.
        resolutions: what decides about single paths, before the strategy does.

    Raises NotFound, InvalidInput where source and target are the same, the target is a snapshot, or a
    resolution is of no conflict, PayloadTooLarge where more differs than ``limits`` allow, and Conflict where
    both changed the same paths and nothing decides: ``conflicts`` lists them.
    """

    def once() -> MergeOutcome:
        with database.hold():  # what is compared stays until it is committed
            return merged_once()

    def merged_once() -> MergeOutcome:
        plan = _plan(database, source, target, "ours" if resolutions else strategy, limits.nodes, shows)
        if resolutions:
            plan = _decided(database, plan, resolutions, strategy, limits)
        theirs, ours = plan.theirs, plan.ours
        if plan.merged.conflicts and strategy == "fail" and not resolutions:
            raise _refused(plan, limits.conflicts_listed)
        if permit is not None:
            permit(plan.merged.edits, database.version_of(ours.root), database.version_of(theirs.root))
        if dry_run:
            return plan.outcome
        text = message or f"merge {theirs.label} into {ours.label}"
        transaction = database.transaction(actor=actor, message=text, ref=ours.ref)
        _queue(transaction, plan)
        _note(database, transaction, plan)
        if not len(transaction):
            return plan.outcome
        return replace(plan.outcome, version=_commit(transaction), committed=True)

    return attempt(once, f"What {target} holds at the paths of the merge")


class _Plan(Struct, frozen=True):
    """A merge that is found out and not yet committed.

    Attributes:
        base: root of the common base, if one is known.
        merged: the edits of the target, and the conflicts.
        shown: the conflicts that may be shown.
        system: the system tree that it was found out by.
        sequence: number of the last commit by then.
        texts: contents that somebody wrote for paths of the edits.
    """

    theirs: Side
    ours: Side
    base: Hash | None
    merged: MergedTree
    shown: list[MergeConflict]
    system: Version
    sequence: int
    texts: Mapping[Path, bytes] = {}

    @property
    def outcome(self) -> MergeOutcome:
        return MergeOutcome(
            self.theirs.label,
            self.ours.label,
            self.ours.root,
            self.base,
            Counts.of(self.merged.edits),
            self.is_fast_forward,
            len(self.shown),
            committed=False,
        )

    @property
    def is_fast_forward(self) -> bool:
        return self.ours.root == self.base and bool(self.merged.edits)


def _plan(
    database: Database,
    source: str,
    target: str,
    strategy: MergeStrategy,
    most_nodes: int | None,
    shows: Callable[[Path], bool] | None,
) -> _Plan:
    head_root, sequence, system = read_state(database)
    head = Side(HEAD, head_root, sequence)
    theirs = _find_source(database, system, source, head)
    ours = _find_target(database, system, target, head)
    if (ours.ref, ours.root) == (theirs.ref, theirs.root) and ours.label == theirs.label:
        raise InvalidInput("A version cannot be merged into itself.", field="into")
    base = _base(database, theirs, ours)
    if base is not None and not database.is_available(base):
        raise VersionCollected(
            "The state that both come of was collected, so nobody can tell what each of them has changed. "
            "Promote the fork instead, or restore from it what is wanted.",
            version=base.hex(),
        )
    merged = run_blocking(merge_trees, database, base, ours.root, theirs.root, strategy, most_nodes)
    shown = [one for one in merged.conflicts if shows is None or shows(one.path)]
    return _Plan(theirs, ours, base, merged, shown, system, sequence)


def _decided(
    database: Database,
    plan: _Plan,
    resolutions: Sequence[Resolution],
    strategy: MergeStrategy,
    limits: MergeLimits,
) -> _Plan:
    """The plan with what was decided of its conflicts; refused where some are left that nothing decides."""
    sides = [database.version_of(side.root) for side in (plan.ours, plan.theirs)]

    def taken(path: Path) -> bool:
        return any(side.get(path) is not None for side in sides)

    resolved = resolve(plan.merged.conflicts, plan.shown, resolutions, strategy, taken)
    if resolved.open:
        left = {one.path for one in resolved.open}
        shown = [one for one in plan.shown if one.path in left]
        merged = replace(plan.merged, conflicts=resolved.open)
        raise _refused(replace(plan, merged=merged, shown=shown), limits.conflicts_listed)
    merged = replace(plan.merged, edits=[*plan.merged.edits, *resolved.edits])
    return replace(plan, merged=merged, texts=resolved.texts)


def _find_source(database: Database, system: Version, name: str, head: Side) -> Side:
    if name == HEAD:
        return head
    fork = _find(Fork, database, system, name)
    if fork is not None:
        return _fork_side(database, fork)
    snapshot = _find(Snapshot, database, system, name)
    if snapshot is not None:
        held = snapshot.base_sequence_in(database)
        if held is None:
            held = database.commit_of(snapshot.root)
        return Side(f"snapshot {snapshot.name}", snapshot.root, held)
    raise NotFound("There is no fork or snapshot of this name.", field="from", name=name[:200])


def _find_target(database: Database, system: Version, name: str, head: Side) -> Side:
    if name == HEAD:
        return head
    fork = _find(Fork, database, system, name)
    if fork is not None:
        return _fork_side(database, fork)
    if _find(Snapshot, database, system, name) is not None:
        raise InvalidInput("A snapshot never changes; merge into HEAD or into a fork.", field="into")
    raise NotFound("There is no fork of this name.", field="into", name=name[:200])


def _find(kind: type[R], database: Database, system: Version, name: str) -> R | None:
    """The fork or snapshot that a name means, with or without ``forks/`` or ``snapshots/`` before it."""
    prefix, _, rest = name.partition("/")
    for one in [rest, name] if prefix == kind.prefix and rest else [name]:
        with suppress(NotFound):
            return kind.read(database, system, one)
    return None


def _fork_side(database: Database, fork: Fork) -> Side:
    """A fork, which also holds the state of HEAD that is its base, where that is one."""
    held = None if fork.base is None else database.commit_of(fork.base)
    return Side(f"fork {fork.name}", fork.root, max(held or 0, fork.base_sequence), fork)


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


def _note(database: Database, transaction: Transaction, plan: _Plan) -> None:
    """Writes down what the two have in common now, for the next merge."""
    theirs, ours, system = plan.theirs, plan.ours, plan.system
    if ours.fork is None:
        if theirs.fork is not None and theirs.fork.base != theirs.root:
            theirs.fork.changed(base=theirs.root.hex()).rewrite_document(transaction, system)
        return
    fork = ours.fork
    if theirs.label == HEAD:
        changed = fork.changed(base=theirs.root.hex(), base_sequence=plan.sequence)
    else:
        changed = _taken_over(database, ours, theirs)
        if theirs.fork is not None:
            changed = changed.changed(merged=_united(fork, theirs.fork, plan.sequence))
    if changed != fork:
        changed.rewrite_document(transaction, system)


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
    if fork.base == root_at(database, held):
        fork = fork.changed(base=root_at(database, sequence).hex())
    return fork.changed(base_sequence=sequence)


def _queue(transaction: Transaction, plan: _Plan) -> None:
    """Adds the merge to a transaction, on condition that the target still holds what the merge has seen."""
    if plan.is_fast_forward:
        transaction.set_ref(plan.ours.ref, plan.theirs.root, expected=plan.ours.root)
        if plan.ours.ref == HEAD:
            write_origin(transaction, plan.system, plan.theirs.root, plan.sequence)
        return
    for edit in plan.merged.edits:
        condition = same_content(edit.before)
        if edit.path in plan.texts:
            assert edit.after is not None
            text = plan.texts[edit.path]
            transaction.put(edit.path, text, content_type=edit.after.content_type, condition=condition)
            continue
        if edit.after is None:
            transaction.delete(edit.path, recursive=True, condition=condition)
            continue
        kinds = {edit.after.kind, edit.after.kind if edit.before is None else edit.before.kind}
        if len(kinds) == 2 and EntryKind.DIRECTORY in kinds:
            transaction.delete(edit.path, recursive=True, condition=condition)
            condition = same_content(None)
        transaction.put_entry(edit.path, edit.after, condition=condition)


def _commit(transaction: Transaction) -> Hash:
    try:
        return transaction.commit().version
    except (AlreadyExists, Conflict, NotFound) as error:
        # The paths have changed in a way that the conditions do not name: a parent that went, say.
        raise PreconditionFailed(error.message) from None


def _refused(plan: _Plan, listed: int) -> Conflict:
    theirs, ours, base, shown = plan.theirs, plan.ours, plan.base, plan.shown
    paths = f"{len(shown)} paths" if len(shown) == len(plan.merged.conflicts) else "paths"
    return Conflict(
        f"{theirs.label} and {ours.label} both changed {paths}; resolve them, or merge with "
        "the strategy 'ours' or 'theirs'.",
        base=None if base is None else base.hex(),
        ours=ours.root.hex(),
        theirs=theirs.root.hex(),
        conflict_count=len(shown),
        conflicts=[
            {
                "path": format_path(one.path),
                "kind": one.kind,
                "base": _shown(one.base),
                "ours": _shown(one.ours),
                "theirs": _shown(one.theirs),
                "differs": _differs(one.ours, one.theirs),
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
        "content_type": entry.content_type,
    }


def _differs(ours: Entry | None, theirs: Entry | None) -> list[str]:
    """What the two sides have not in common, so that nobody has to guess where their contents are equal."""
    if ours is None or theirs is None:
        return ["existence"]
    found = {
        "entry_type": ours.kind is not theirs.kind,
        "content": ours.hash != theirs.hash,
        "content_type": ours.content_type != theirs.content_type,
    }
    return [name for name, is_different in found.items() if is_different]
