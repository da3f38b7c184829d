"""Forks: branches with a state of their own, which share everything that is equal with every other.

A name and what it begins from flow in; a ref and a small document in one commit flow out. Promoting and
abandoning move refs and never copy anything.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from svc.database import Database, Transaction, Version
from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PreconditionFailed
from svc.hashing import Hash, parse_hash
from svc_versions.ancestry import EMPTY_ROOT, root_at
from svc_versions.attempts import attempt
from svc_versions.documents import (
    ForkDocument,
    SnapshotDocument,
    documents,
    find_document,
    find_root,
    present_ms,
    read_state,
    references,
    same_content,
)
from svc_versions.names import (
    ABANDONED,
    FORKS,
    HEAD,
    SNAPSHOTS,
    document_path,
    new_name,
    normal_name,
    reference,
)
from svc_versions.roots import snapshot_names

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
    "read_fork",
    "snapshot_or_version",
    "write_fork_document",
    "write_origin",
]

_LONGEST_KEPT_NAME = 170
_LONGEST_TIME = 15


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork.

    Attributes:
        name: its name.
        root: root hash of its state.
        created_ms: when it was made, Unix milliseconds.
        base: root of the newest state that it and HEAD have in common; None when nobody knows.
        base_sequence: number of the newest commit of HEAD whose state it holds; 0 when nobody knows.
        created_by: who made it, if known.
        merged: by identity of other forks, the root (in hex) that was merged into it last, and when (the
            number of a commit).
        sequence: number of the last commit before it; orders those of one millisecond.
    """

    name: str
    root: Hash
    created_ms: int
    base: Hash | None
    base_sequence: int
    created_by: str | None
    merged: dict[str, tuple[str, int]]
    sequence: int = 0

    @property
    def identity(self) -> str:
        """What tells it from an earlier or later fork of its name."""
        return f"{self.name}@{self.created_ms}"

    def as_json(self) -> dict[str, Any]:
        """The fork as routes and commands show it."""
        return {
            "name": self.name,
            "root_hash": self.root.hex(),
            "created_at": self.created_ms,
            "base": None if self.base is None else self.base.hex(),
            "created_by": self.created_by,
        }

    def document(self) -> ForkDocument:
        """Returns what its document says."""
        return ForkDocument(
            created_at=self.created_ms,
            created_by=self.created_by,
            base="" if self.base is None else self.base.hex(),
            base_sequence=self.base_sequence,
            merged=self.merged,
            sequence=self.sequence,
        )


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a promotion did.

    Attributes:
        fork: the fork, as it is now.
        version: HEAD's root after it.
        previous: HEAD's root before it.
    """

    fork: Fork
    version: Hash
    previous: Hash


@dataclass(frozen=True, slots=True)
class AbandonedFork:
    """The last state of a fork that was abandoned and is not collected yet.

    Attributes:
        name: the name that it had; the beginning of a very long one.
        root: root hash of its last state.
        abandoned_ms: when, Unix milliseconds.
    """

    name: str
    root: Hash
    abandoned_ms: int

    def as_json(self) -> dict[str, Any]:
        """The fork as routes and commands show it."""
        return {"name": self.name, "root_hash": self.root.hex(), "abandoned_at": self.abandoned_ms}


def list_abandoned(database: Database) -> list[AbandonedFork]:
    """Returns what is left of the forks that were abandoned, newest first."""
    _, _, system = read_state(database)
    found = []
    for ref, root in references(database, system, ABANDONED):
        name, _, time_text = ref.rpartition("@")
        digits = time_text.partition("-")[0]
        is_time = digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_TIME
        found.append(AbandonedFork(name or ref, root, int(digits) if is_time else 0))
    return sorted(found, key=lambda one: (-one.abandoned_ms, one.name))


def list_forks(database: Database) -> list[Fork]:
    """Returns all active forks, newest first."""
    _, _, system = read_state(database)
    known = documents(system, FORKS, ForkDocument)
    found = [
        _fork(database, name, root, known.get(name)) for name, root in references(database, system, FORKS)
    ]
    return sorted(found, key=lambda one: (-one.created_ms, -one.sequence, one.name))


def find_fork(database: Database, name: str) -> Fork:
    """Returns a fork.

    Raises:
        NotFound: there is no active fork of this name.
    """
    _, _, system = read_state(database)
    return read_fork(database, system, name)


def read_fork(database: Database, system: Version, name: str) -> Fork:
    """Returns a fork as a system tree has it; raises as ``find_fork``."""
    name = normal_name(name)
    try:
        root = find_root(system, FORKS, name)
    except InvalidInput:
        root = None
    if root is None:
        raise _missing(name)
    return _fork(database, name, root, find_document(system, FORKS, name, ForkDocument)[1])


def create_fork(
    database: Database,
    name: str,
    *,
    base: str | None = None,
    actor: str | None = None,
) -> Fork:
    """Makes a fork.

    Args:
        database: the database.
        name: its name.
        base: name of the snapshot that it begins from, or another version as ``Database.named_version``
            takes it; None means HEAD.
        actor: who makes it.

    Raises:
        AlreadyExists: the name is taken.
        InvalidInput: it is no name.
        NotFound: there is no such version.
    """
    name = new_name(name)
    head_root, sequence, system = read_state(database)
    if find_root(system, FORKS, name) is not None:
        raise _taken(name)
    made = Fork(name, head_root, present_ms(database), head_root, sequence, actor, {}, sequence)
    if base is not None:
        root = snapshot_or_version(database, base)
        made = replace(made, root=root, **_ancestry(database, system, root, sequence))
    transaction = database.transaction(actor=actor, message=f"create fork {name}")
    transaction.set_ref(reference(FORKS, name), made.root, expected=b"")
    transaction.put_system(document_path(FORKS, name), msgspec.json.encode(made.document()))
    try:
        transaction.commit()
    except AlreadyExists:
        raise _taken(name) from None
    return made


def promote_fork(
    database: Database, name: str, *, force: bool = False, actor: str | None = None
) -> Promotion:
    """Makes a fork's state HEAD; the fork stays active, with HEAD as its base.

    Args:
        database: the database.
        name: the fork.
        force: promote although HEAD has moved since the two had a state in common.
        actor: who does it.

    Raises:
        NotFound: there is no active fork of this name.
        Conflict: HEAD has moved, and ``force`` is false.
    """

    def once() -> Promotion:
        head_root, sequence, system = read_state(database)
        fork = read_fork(database, system, name)
        follows = head_root in (fork.base, fork.root)
        if not (follows or force):
            raise Conflict(
                "HEAD has moved since the fork began or was last merged; merge the fork, or promote it "
                "with force=true.",
                name=fork.name,
                base=None if fork.base is None else fork.base.hex(),
                head=head_root.hex(),
            )
        anchor = sequence if follows else fork.base_sequence
        transaction = database.transaction(actor=actor, message=f"promote fork {fork.name}")
        transaction.set_ref(reference(FORKS, fork.name), fork.root, expected=fork.root)
        if fork.root != head_root:
            transaction.set_ref(HEAD, fork.root, expected=head_root)
        write_origin(transaction, system, fork.root, anchor)
        document = write_fork_document(
            transaction, system, replace(fork, base=fork.root, base_sequence=anchor)
        )
        try:
            transaction.commit()
        except NotFound:
            raise _missing(fork.name) from None
        return Promotion(_fork(database, fork.name, fork.root, document), fork.root, head_root)

    return attempt(once, "HEAD or the fork")


def abandon_fork(database: Database, name: str, *, actor: str | None = None) -> Fork:
    """Abandons a fork: its name becomes free, and its state stays reachable until it is collected.

    Raises:
        NotFound: there is no active fork of this name.
    """

    def once() -> Fork:
        _, _, system = read_state(database)
        fork = read_fork(database, system, name)
        transaction = database.transaction(actor=actor, message=f"abandon fork {fork.name}")
        grave = _free_grave(database, system, fork.name)
        transaction.set_ref(reference(ABANDONED, grave), fork.root, expected=b"")
        transaction.put_system(document_path(ABANDONED, grave), msgspec.json.encode(fork.document()))
        transaction.set_ref(reference(FORKS, fork.name), None, expected=fork.root)
        if system.get(document_path(FORKS, fork.name)) is not None:
            transaction.delete_system(document_path(FORKS, fork.name))
        try:
            transaction.commit()
        except AlreadyExists as error:
            raise PreconditionFailed(error.message) from None
        except NotFound:
            raise _missing(fork.name) from None
        return fork

    return attempt(once, "The fork")


def snapshot_or_version(database: Database, text: str) -> Hash:
    """Returns the root of a snapshot, or of another version that a text names.

    Raises:
        NotFound: it names nothing.
        InvalidInput: it is empty.
    """
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
        return {"base": root, "base_sequence": held}
    for kind in (FORKS, ABANDONED):
        for name, at in references(database, system, kind):
            if at != root:
                continue
            source = _fork(database, name, root, find_document(system, kind, name, ForkDocument)[1])
            merged = dict(source.merged)
            if kind == FORKS:
                merged[source.identity] = (root.hex(), sequence)
            return {"base": source.base, "base_sequence": source.base_sequence, "merged": merged}
    for name in snapshot_names(database, system, root):
        document = find_document(system, SNAPSHOTS, name, SnapshotDocument)[1]
        if document is not None and document.base_sequence is not None:
            held = document.base_sequence
            return {"base": root_at(database, held), "base_sequence": held}
    return {"base": None, "base_sequence": 0}


def write_fork_document(transaction: Transaction, system: Version, fork: Fork) -> ForkDocument:
    """Adds a fork's document to a transaction, under the condition that nobody wrote it since it was read."""
    document = fork.document()
    entry, _ = find_document(system, FORKS, fork.name, ForkDocument)
    transaction.put_system(
        document_path(FORKS, fork.name), msgspec.json.encode(document), condition=same_content(entry)
    )
    return document


def write_origin(transaction: Transaction, system: Version, root: Hash, sequence: int) -> None:
    """Notes of a root that HEAD jumps to which commit of HEAD it came of, for the bases of later merges."""
    path = ("versions", "origins", root.hex())
    if system.get(path) is None:
        transaction.put_system(path, msgspec.json.encode(sequence))


def _fork(database: Database, name: str, root: Hash, document: ForkDocument | None) -> Fork:
    if document is None:
        # Made by another program: the latest time of what it holds is the best that is known.
        return Fork(name, root, database.version_of(root).totals().updated_ms, None, 0, None, {})
    return Fork(
        name,
        root,
        document.created_at,
        parse_hash(document.base),
        document.base_sequence,
        document.created_by,
        document.merged,
        document.sequence,
    )


def _free_grave(database: Database, system: Version, name: str) -> str:
    """The name under which an abandoned fork's state stays."""
    base = f"{name[:_LONGEST_KEPT_NAME]}@{present_ms(database)}"
    number = 1
    grave = base
    while find_root(system, ABANDONED, grave) is not None:
        number += 1
        grave = f"{base}-{number}"
    return grave


def _missing(name: str) -> NotFound:
    return NotFound("There is no fork of this name.", name=name[:200])


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists("A fork of this name exists.", name=name)
