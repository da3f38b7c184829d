"""Trees of snapshots and forks on their way: what differs from a version that both nodes have."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from svc.errors import InvalidInput, SvcError
from svc.plugin import (
    EMPTY_ROOT,
    Database,
    Entry,
    EntryKind,
    Hash,
    Path,
    StoredContent,
    Transaction,
    Version,
    reference_path,
)
from svc_sync.checking import check_value
from svc_sync.exchange.contents import Fetcher
from svc_sync.exchange.links import Link
from svc_sync.exchange.messages import ObjectsMessage, TreeMessage, read_path, read_register
from svc_sync.exchange.parts import begin_part
from svc_sync.exchange.reading import directory_of, leaf_of
from svc_sync.exchange.records import ACTOR, now_ms
from svc_sync.exchange.references import References
from svc_sync.exchange.store import RETURNING, forget_returning
from svc_sync.registers import winner
from svc_sync.scopes import Scope
from svc_sync.tree import FULL, Application
from svc_sync.values import Directory, Value

__all__ = [
    "PARTIAL",
    "FetchTree",
    "TreeCopier",
    "forget_partial_trees",
    "has_version",
    "leaves_of",
    "refuse_tree",
]

FetchTree = Callable[[Hash, "list[Hash]"], Hash]
"""Brings a tree that is not here, as what differs from one of some roots; returns its root here."""

PARTIAL = "sync/tree-"
"""Begins the names of refs that hold trees until something is called by them."""
_MOST_BASES = 16
_EVERYTHING = Scope()


def refuse_tree(root: Hash, bases: list[Hash]) -> Hash:
    """Is asked where no tree can be missing."""
    del bases
    raise InvalidInput("The tree of this version is not here.", version=root.hex())


def leaves_of(base: Version | None, version: Version, after: Path | None) -> Iterator[tuple[Path, Value]]:
    """Yields what makes a version of another one, or of nothing: leaves, and None for what goes."""
    if base is None:
        for path, entry in version.walk(after=after):
            leaf = leaf_of(entry)
            if leaf is not FULL:
                yield path, leaf
        return
    for change in base.diff(version, after=after):
        old, new = leaf_of(change.before), leaf_of(change.after)
        if new is not FULL:
            yield change.path, new
        elif isinstance(old, Entry):
            yield change.path, None


def has_version(database: Database, root: Hash) -> bool:
    """Whether a version can be read here."""
    try:
        database.require_version(root)
    except SvcError:
        return False
    return True


class TreeCopier:
    """Copies trees from another node, each into a ref of its own until ``let_go``.

    Args:
        database: takes the trees.
        link: to the other node.
        cluster_id: of both.
        asker: this node's writer.
    """

    def __init__(self, database: Database, link: Link, cluster_id: str, asker: int) -> None:
        self._database = database
        self._link = link
        self._cluster_id = cluster_id
        self._asker = asker
        self._copied: dict[Hash, Hash] = {}
        # The threads of several peers may copy one tree at a time.
        self._name = secrets.token_hex(8)

    def __call__(self, root: Hash, bases: list[Hash], scope: Scope = _EVERYTHING) -> Hash:
        """Returns the root here of a tree that the other node has.

        Args:
            root: of the tree there.
            bases: versions here: what differs from one of them is enough.
            scope: what this node takes of it; the rest is as in the first of the bases.

        Raises:
            NotFound: it has it no more.
            InvalidInput: it has sent what is no tree.
        """
        if root not in self._copied:
            self._copied[root] = self._copy(root, bases[:_MOST_BASES], scope)
        return self._copied[root]

    def local(self, root: Hash | None, references: References) -> Hash | None:
        """Returns what stands here for a root that a register says: copied, or under a name already."""
        if root is None:
            return None
        return self._copied.get(root) or references.local_root(root) or root

    def edit(
        self,
        root: Hash,
        edits: Application,
        content_of: Callable[[Path, Entry], Entry | StoredContent],
        base: Hash | None = None,
    ) -> Hash:
        """Changes the tree of a ref that was copied, or what it was before; returns its root after it."""
        ref = self._ref(root)
        if base is not None:
            with self._database.transaction(actor=ACTOR, message="edit a copied tree anew") as changes:
                changes.set_ref(ref, base)
        if edits.removed or edits.put:
            with self._database.transaction(
                actor=ACTOR, message="edit a copied tree", ref=ref, checks_contents=False
            ) as changes:
                for path in edits.removed:
                    changes.delete(path)
                for path, value in edits.put:
                    _put(changes, path, value, content_of)
        return _root_of(self._database, ref)

    def let_go(self) -> None:
        """Removes the refs that held the trees: they have their names."""
        system = self._database.system()
        refs = [ref for ref in map(self._ref, self._copied) if system.get(reference_path(ref)) is not None]
        if refs:
            with self._database.transaction(actor=ACTOR, message="trees have their names") as changes:
                for ref in refs:
                    changes.set_ref(ref, None)
        self._copied.clear()

    def _ref(self, root: Hash) -> str:
        return f"{PARTIAL}{root.hex()[:32]}-{self._name}"

    def _copy(self, root: Hash, bases: list[Hash], scope: Scope) -> Hash:
        ref, asked, after, is_first = self._ref(root), bases if scope.is_whole else [], None, True
        while True:
            answer = self._link.tree(
                TreeMessage(
                    cluster_id=self._cluster_id, asker=self._asker, root=root, after=after, bases=asked
                )
            )
            if is_first:
                if answer.base is not None and answer.base not in bases:
                    raise InvalidInput("The other node compares with a version that was not named.")
                asked, is_first = [] if answer.base is None else [answer.base], False
                begin = answer.base or EMPTY_ROOT
                begin_part(self._database, ref, scope, begin if scope.is_whole else bases[0])
            message = ObjectsMessage(cluster_id=self._cluster_id, asker=self._asker, root=root)
            fetch = Fetcher(self._database, self._link.objects, message, answer.contents)
            now = now_ms()
            leaves = [
                (read_path(text), winner(read_register(leaf, now))[1].value) for text, leaf in answer.leaves
            ]
            put_leaves(self._database, ref, [row for row in leaves if scope.takes(row[0])], fetch)
            if answer.after is None:
                return _root_of(self._database, ref)
            after = answer.after


def forget_partial_trees(database: Database) -> None:
    """Removes what a process has left that ended while it copied a tree; for when nobody copies one."""
    left = [ref for ref, _ in database.refs("sync") if ref.startswith(PARTIAL)]
    system = database.system()
    if left or system.get(RETURNING) is not None:
        with database.transaction(actor=ACTOR, message="forget trees that were copied in part") as changes:
            forget_returning(changes, system)
            for ref in left:
                changes.set_ref(ref, None)


def put_leaves(database: Database, ref: str, leaves: Iterable[tuple[Path, Value]], fetch: Fetcher) -> None:
    """Brings the tree of a ref to what leaves say; one transaction."""
    version = database.version_of(_root_of(database, ref))
    gone: Path | None = None
    with database.transaction(actor=ACTOR, message="copy a tree", ref=ref, checks_contents=False) as changes:
        for path, value in leaves:
            if gone is not None and path[: len(gone)] != gone:
                gone = None
            there = None if gone is not None else version.get(path)
            is_no_content = value is None or isinstance(value, Directory)
            if there is not None and (is_no_content or there.kind is EntryKind.DIRECTORY):
                changes.delete(path, recursive=True)
                gone = path
            if value is not None:
                _put(changes, path, value, fetch)
        try:
            changes.commit()
        except SvcError as error:
            raise InvalidInput(f"The other node has sent a leaf that can't be: {error}") from error


def _put(
    changes: Transaction, path: Path, value: Value, content_of: Callable[[Path, Entry], Entry | StoredContent]
) -> None:
    check_value(value)
    if isinstance(value, Directory):
        changes.put_entry(path, directory_of(value))
    elif isinstance(value, Entry) and (value.target is not None or value.size == 0):
        changes.put_entry(path, value)
    elif isinstance(value, Entry):
        content = content_of(path, value)
        if isinstance(content, Entry):
            changes.put_entry(path, content)
            return
        times: dict[str, Any] = {"created_ms": value.created_ms, "updated_ms": value.updated_ms}
        changes.put(path, content, content_type=value.content_type, **times)
    else:
        raise InvalidInput("The other node has sent a leaf that is none.")


def _root_of(database: Database, ref: str) -> Hash:
    entry = database.system().get(reference_path(ref))
    assert entry is not None
    return entry.hash
