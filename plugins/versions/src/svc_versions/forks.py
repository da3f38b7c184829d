"""Forks: branches with a state of their own, which share everything that is equal with every other.

Making, promoting and abandoning one moves refs and never copies anything.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain, count
from typing import Any

import msgspec
from msgspec import Struct

from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PreconditionFailed
from svc.plugin import (
    EMPTY_ROOT,
    Condition,
    Database,
    Hash,
    Transaction,
    Version,
    attempt,
    parse_hash,
    reference_path,
)
from svc_versions import models
from svc_versions.ancestry import root_at
from svc_versions.documents import ForkDocument, present_ms, read_state
from svc_versions.named_refs import NamedRef
from svc_versions.names import ABANDONED, FORKS, HEAD, new_name, reference
from svc_versions.roots import snapshot_names
from svc_versions.snapshots import Snapshot

__all__ = [
    "AbandonedFork",
    "Fork",
    "Promotion",
    "abandon_fork",
    "create_fork",
    "find_fork",
    "list_abandoned",
    "list_forks",
    "promote_fork",
    "snapshot_or_version",
    "state_of",
    "write_origin",
]

_LONGEST_KEPT_NAME = 170
_LONGEST_TIME = 15


class Fork(NamedRef[ForkDocument], frozen=True):
    """An active fork; its root is its present state."""

    prefix = FORKS
    noun = "fork"
    form = ForkDocument

    @property
    def base(self) -> Hash | None:
        """Root of the newest state that it and HEAD have in common; None when nobody knows."""
        return parse_hash(self.document.base)

    @property
    def base_sequence(self) -> int:
        """Number of the newest commit of HEAD whose state it holds; 0 when nobody knows."""
        return self.document.base_sequence

    @property
    def merged(self) -> dict[str, tuple[str, int]]:
        """By identity of another fork: its root (hex) when it was merged last, and the last commit then."""
        return self.document.merged

    @property
    def identity(self) -> str:
        """What tells it from an earlier or later fork of its name."""
        return f"{self.name}@{self.created_ms}"

    def write_document(self, transaction: Transaction, condition: Condition | None = None) -> None:
        """Adds the document to a transaction, and a ref to the base: merges need it, so it shall stay."""
        super().write_document(transaction, condition)
        if self.base is not None and self.base != EMPTY_ROOT:
            # Suppressed: it was collected before, or belongs to another database that this was imported from.
            with suppress(NotFound):
                transaction.set_ref(self.base_ref, self.base)

    def remove(self, transaction: Transaction, system: Version) -> None:
        """Adds the removal of the fork, its document and the ref to its base to a transaction."""
        super().remove(transaction, system)
        if system.get(reference_path(self.base_ref)) is not None:
            transaction.set_ref(self.base_ref, None)

    @property
    def base_ref(self) -> str:
        """Full name of the ref that keeps the base."""
        return reference(f"{self.prefix}-bases", self.name)

    def as_answer(self) -> models.Fork:
        """The fork as operations answer it."""
        return models.Fork(
            name=self.name,
            root_hash=self.root.hex(),
            created_at=self.created_ms,
            base=None if self.base is None else self.base.hex(),
            created_by=self.created_by,
        )


class _Abandoned(Fork, frozen=True):
    """What is left of an abandoned fork, under a name that nobody else takes."""

    prefix = ABANDONED


class Promotion(Struct, frozen=True):
    """What a promotion did: the fork as it is now, and the roots of HEAD after it and before."""

    fork: Fork
    version: Hash
    previous: Hash


class AbandonedFork(Struct, frozen=True):
    """The last state of a fork that was abandoned and is not collected yet.

    ``name`` is the one that it had; the beginning of a very long one.
    """

    name: str
    root: Hash
    abandoned_ms: int

    def as_answer(self) -> models.Fork:
        """The fork as operations answer it."""
        return models.Fork(name=self.name, root_hash=self.root.hex(), abandoned_at=self.abandoned_ms)


def list_abandoned(database: Database) -> list[AbandonedFork]:
    """Returns what is left of the forks that were abandoned, newest first."""
    _, _, system = read_state(database)
    found = []
    for ref, root in _Abandoned.roots(database, system):
        name, _, time_text = ref.rpartition("@")
        digits = time_text.partition("-")[0]
        is_time = digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_TIME
        found.append(AbandonedFork(name or ref, root, int(digits) if is_time else 0))
    return sorted(found, key=lambda one: (-one.abandoned_ms, one.name))


def list_forks(database: Database) -> list[Fork]:
    """Returns all active forks, newest first."""
    return Fork.list(database)


def find_fork(database: Database, name: str) -> Fork:
    """Returns a fork."""
    return Fork.find(database, name)


def state_of(database: Database, *, fork: str | None, version: str | None) -> tuple[Hash | None, int | None]:
    """Returns the root of a fork or of a version, None for neither; and of a fork its base sequence.

    Raises InvalidInput for both, and NotFound.
    """
    if fork is not None and version is not None:
        raise InvalidInput("A snapshot is of a fork or of a version, not of both.", field="version")
    if version is not None:
        return database.resolve_version(version=version), None
    if fork is not None:
        found = find_fork(database, fork)
        return found.root, found.base_sequence
    return None, None


def create_fork(
    database: Database,
    name: str,
    *,
    base: str | None = None,
    actor: str | None = None,
) -> Fork:
    """Makes a fork of a snapshot, or of another version as ``Database.named_version`` takes it, else of HEAD.

    Raises AlreadyExists, InvalidInput for what is no name, and NotFound where there is no such version.
    """
    name = new_name(name)
    head_root, sequence, system = read_state(database)
    if Fork.exists(system, name):
        raise Fork.taken(name)
    if base is None:
        root, ancestry = head_root, _ancestry_of(head_root, sequence)
    else:
        root = snapshot_or_version(database, base)
        ancestry = _ancestry(database, system, root, sequence)
    document = ForkDocument(created_at=present_ms(database), created_by=actor, sequence=sequence, **ancestry)
    made = Fork(name, root, document)
    transaction = database.transaction(actor=actor, message=f"create fork {name}")
    made.add(transaction)
    try:
        transaction.commit()
    except AlreadyExists:
        raise Fork.taken(name) from None
    return made


def promote_fork(
    database: Database, name: str, *, force: bool = False, actor: str | None = None
) -> Promotion:
    """Makes a fork's state HEAD; the fork stays active, with HEAD as its base.

    Raises NotFound for no active fork, and Conflict, without ``force``, where HEAD has moved since the two
    had a state in common.
    """

    def once() -> Promotion:
        head_root, sequence, system = read_state(database)
        fork = Fork.read(database, system, name)
        follows = head_root in (fork.base, fork.root)
        if not (follows or force):
            raise Conflict(
                "HEAD has moved since the fork began or was last merged; merge the fork, or promote it "
                "with force=true.",
                name=fork.name,
                base=None if fork.base is None else fork.base.hex(),
                head=head_root.hex(),
                parameter="force",
            )
        anchor = sequence if follows else fork.base_sequence
        transaction = database.transaction(actor=actor, message=f"promote fork {fork.name}")
        transaction.set_ref(fork.ref, fork.root, expected=fork.root)
        if fork.root != head_root:
            transaction.set_ref(HEAD, fork.root, expected=head_root)
        write_origin(transaction, system, fork.root, anchor)
        promoted = fork.changed(base=fork.root.hex(), base_sequence=anchor)
        promoted.rewrite_document(transaction, system)
        try:
            transaction.commit()
        except NotFound:
            raise Fork.missing(fork.name) from None
        return Promotion(promoted, fork.root, head_root)

    return attempt(once, "HEAD or the fork")


def abandon_fork(database: Database, name: str, *, actor: str | None = None) -> Fork:
    """Abandons a fork: its name becomes free, and its state stays reachable until it is collected."""

    def once() -> Fork:
        _, _, system = read_state(database)
        fork = Fork.read(database, system, name)
        transaction = database.transaction(actor=actor, message=f"abandon fork {fork.name}")
        _Abandoned(_free_abandoned_name(database, system, fork.name), fork.root, fork.document).add(
            transaction
        )
        fork.remove(transaction, system)
        try:
            transaction.commit()
        except AlreadyExists as error:
            raise PreconditionFailed(error.message) from None
        except NotFound:
            raise Fork.missing(fork.name) from None
        return fork

    return attempt(once, "The fork")


def snapshot_or_version(database: Database, text: str) -> Hash:
    """Returns the root of a snapshot, or of another version that a text names; NotFound for neither."""
    if not text:
        raise InvalidInput("The name of a version is empty.", field="base")
    with suppress(NotFound, InvalidInput):
        return database.resolve_version(snapshot=text)
    return database.named_version(text)


def _ancestry(database: Database, system: Version, root: Hash, sequence: int) -> dict[str, Any]:
    """What a fork that begins from a version has in common with HEAD and with other forks.

    A fork of a fork holds changes that HEAD has never seen: it has in common with HEAD what that one has,
    else a merge would take them for known.
    """
    held = 0 if root == EMPTY_ROOT else database.commit_of(root)
    if held is not None:
        return _ancestry_of(root, held)
    for kind in (Fork, _Abandoned):
        for name, at in kind.roots(database, system):
            if at != root:
                continue
            source = kind.read(database, system, name)
            merged = dict(source.merged)
            if kind is Fork:
                merged[source.identity] = (root.hex(), sequence)
            return {"base": source.document.base, "base_sequence": source.base_sequence, "merged": merged}
    for name in snapshot_names(database, system, root):
        held = Snapshot.read(database, system, name).base_sequence_in(database)
        if held is not None:
            return _ancestry_of(root_at(database, held), held)
    return {}


def _ancestry_of(base: Hash, sequence: int) -> dict[str, Any]:
    return {"base": base.hex(), "base_sequence": sequence}


def write_origin(transaction: Transaction, system: Version, root: Hash, sequence: int) -> None:
    """Notes of a root that HEAD jumps to which commit of HEAD it came of, for the bases of later merges."""
    path = ("versions", "origins", root.hex())
    if system.get(path) is None:
        transaction.put_system(path, msgspec.json.encode(sequence))


def _free_abandoned_name(database: Database, system: Version, name: str) -> str:
    base = f"{name[:_LONGEST_KEPT_NAME]}@{present_ms(database)}"
    names = chain((base,), (f"{base}-{number}" for number in count(2)))
    return next(free for free in names if not _Abandoned.exists(system, free))
