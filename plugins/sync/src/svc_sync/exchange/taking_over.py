"""How a node takes over what a member holds, with what it brings: in one transaction, while clients write.

What it brings is decided for all that it has, which takes long, and kept aside. Where something was written
here meanwhile, only that is decided anew before the next try: so the tries get shorter than the pauses of
those who write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from svc.errors import AlreadyExists, CorruptRecord, NotFound, PreconditionFailed, VersionCollected
from svc.plugin import Database, Entry, Hash, Path, StoredContent, Transaction, same_content
from svc_sync.exchange.commits import Snapshot, own_row, stamp
from svc_sync.exchange.documents import replace_document
from svc_sync.exchange.losers import LOSERS, holding_losers, keep_losers, losers_of
from svc_sync.exchange.reading import VersionTree
from svc_sync.exchange.records import ACTOR, NODE, STAMPED, NodeRecord, State, put_state
from svc_sync.exchange.references import (
    NOTED,
    Noted,
    Planned,
    move_references,
    note_references,
    noted_of,
    plan_all_references,
)
from svc_sync.exchange.seen_cluster import Contents, SeenCluster, pages_of, value_at
from svc_sync.exchange.store import (
    MADE,
    OWN,
    RETURNING,
    SEEN,
    RegisterStore,
    copy_directory,
    copy_registers,
    forget_returning,
    put_registers,
)
from svc_sync.exchange.trees import TreeCopier
from svc_sync.joining import row_of_returned
from svc_sync.registers import Dot, Register, restate
from svc_sync.scopes import REFERENCES, SYSTEM, is_of_user
from svc_sync.tree import FULL, Application, apply, value_of
from svc_sync.values import Directory, Document

__all__ = ["Decide", "TakeOver"]

READY: Path = (*RETURNING, "references")
"""Holds what is to be noted of names."""
_NOTHING = Application([], [], {})

Decide: TypeAlias = Callable[[Snapshot, Snapshot | None], Iterator[dict[Path, Register | None]]]
"""Yields, page by page, the registers of what a node brings: of all that a snapshot has, or of what has
changed since another one. Then None stands for paths at which the node brings nothing any more."""


class _Aside(Struct):
    """What the node is to be; the registers are aside, at ``MADE``.

    Attributes:
        root: the tree.
        vt: the latest of the virtual times of its new life.
        at: the state of the node that this is made of; None before it is complete.
        affected: paths at which something may be shown or lose since losers were looked for.
        lost: what loses, by path; None: not looked for.
        names: what is noted of names at ``READY``; None: nothing yet.
        documents: paths of documents that are not as they shall be; None: not looked for.
    """

    root: Hash
    vt: int = 0
    at: Snapshot | None = None
    affected: set[Path] = msgspec.field(default_factory=set)
    lost: dict[Path, list[Dot]] | None = None
    names: dict[tuple[str, str], Noted] | None = None
    documents: set[Path] | None = None


class TakeOver:
    """One try, when it is called: the node is what the cluster is, and has what it brings. Blocks; commits.

    Calling it raises PreconditionFailed where something was changed here meanwhile: then it is called again.

    Args:
        database: of this node.
        seen: what the member holds.
        trees: has copied its trees.
        root: of the version that the member keeps for this node.
        node: who this node is from then on.
        decide: what this node brings.
        distrusted: its old writer, if its log was put back.
    """

    def __init__(
        self,
        database: Database,
        seen: SeenCluster,
        trees: TreeCopier,
        root: Hash,
        node: NodeRecord,
        decide: Decide,
        distrusted: Collection[int] = (),
    ) -> None:
        self._database = database
        self._seen = seen
        self._trees = trees
        self._root = root
        self._node = node
        self._decide = decide
        self._distrusted = distrusted
        self._aside: _Aside | None = None

    def __call__(self) -> None:
        """Tries once."""
        try:
            self._try()
        except AlreadyExists as error:
            raise PreconditionFailed("Somebody made a name that the cluster has.") from error

    def _try(self) -> None:
        database, seen = self._database, self._seen
        snapshot = stamp(database, level=True)
        if not seen.scope.is_whole:
            seen.require_same_rest(snapshot.tree)
        aside = self._bring(snapshot)
        held = self._hold_losers(snapshot, aside)
        planned = self._note_names(snapshot, aside)
        system = database.system()
        made = RegisterStore(system, MADE)
        with database.transaction(
            actor=ACTOR, message="join the cluster anew", checks_contents=False
        ) as changes:
            changes.set_ref("HEAD", aside.root, expected=snapshot.tree.version.root)
            changes.set_ref(STAMPED, aside.root)
            if held is not None:
                changes.set_ref(LOSERS, held, expected=held)
            self._put_documents(changes, snapshot, aside, made)
            move_references(changes, system, planned)
            copy_directory(changes, system, READY, NOTED)
            copy_registers(changes, system, MADE, OWN)
            forget_returning(changes, system)
            changes.put_system(
                NODE, msgspec.json.encode(self._node), condition=same_content(system.get(NODE))
            )
            put_state(changes, own_row(database, self._node, self._state(snapshot, aside)), snapshot.entry)

    def _bring(self, snapshot: Snapshot) -> _Aside:
        """Keeps aside what comes of what this node brings; commits page by page."""
        aside = self._aside
        if aside is not None and aside.at is not None:
            try:
                return self._bring_changes(snapshot, aside, aside.at)
            except (CorruptRecord, NotFound, VersionCollected):
                pass  # A collection has taken the state of the former try: all is decided again.
        with self._database.transaction(actor=ACTOR, message="begin to carry over") as changes:
            copy_registers(changes, self._database.system(), SEEN, MADE)
        base = self._seen.tree.version.root
        aside = _Aside(self._trees.edit(self._root, _NOTHING, self._seen.contents.of, base=base))
        self._aside = aside
        self._put_all(snapshot, None, aside)
        return aside

    def _bring_changes(self, snapshot: Snapshot, aside: _Aside, since: Snapshot) -> _Aside:
        self._put_all(snapshot, since, aside)
        if aside.documents is not None:
            aside.documents.update(snapshot.documents.changed_since(since.documents))
            aside.documents.update(path for path in aside.affected if path[:2] == SYSTEM)
        return aside

    def _put_all(self, snapshot: Snapshot, since: Snapshot | None, aside: _Aside) -> None:
        contents = _contents_of(self._database, snapshot, self._seen)
        for brought in self._decide(snapshot, since):
            if brought:
                self._put(aside, brought, contents)
        aside.at = snapshot

    def _put(
        self,
        aside: _Aside,
        brought: dict[Path, Register | None],
        contents: Callable[[Path, Entry], Entry | StoredContent],
    ) -> None:
        seen, theirs, made = self._seen, self._seen.registers(), self._seen.registers(MADE)
        tree = VersionTree(self._database.version_of(aside.root))

        def register_at(path: Path) -> Register | None:
            if path in brought:
                return brought[path] or theirs.get(path) or restate(value_of(seen.shown(path, theirs)))
            register = made.get(path)
            if register is None and type(shown := seen.shown(path, theirs)) is Directory:
                # What it held here was an earlier try's: it is empty again, as in the cluster.
                return restate(shown)
            return register

        edits = apply(tree, filter(is_of_user, brought), register_at)
        put = dict(edits.put)

        def register_of(path: Path) -> Register | None:
            register = brought[path] or theirs.get(path)
            if register is None and is_of_user(path):
                value = value_of(seen.shown(path, theirs))
                if isinstance(value, Entry) and path not in put and tree.leaf(path) is FULL:
                    return restate(value)  # It stays displaced.
            return register

        registers = {path: register_of(path) for path in brought}
        with self._database.transaction(actor=ACTOR, message="carry over") as changes:
            put_registers(changes, made, {**registers, **edits.restated})
        if edits.removed or edits.put:
            aside.root = self._trees.edit(self._root, edits, contents)
        aside.affected.update(brought, edits.restated, edits.removed, put)
        times = (one.context.get(self._node.writer, 0) for one in brought.values() if one is not None)
        aside.vt = max(aside.vt, *times, 0)

    def _hold_losers(self, snapshot: Snapshot, aside: _Aside) -> Hash | None:
        tree = VersionTree(self._database.version_of(aside.root))
        contents = _contents_of(self._database, snapshot, self._seen)
        made = self._seen.registers(MADE)
        known, aside.lost = aside.lost, None  # Until it is whole: else they are looked for anew.
        rows = made.items() if known is None else ((path, made.get(path)) for path in aside.affected)
        found = known or {}
        for page in pages_of(rows):
            kept: dict[tuple[Path, Dot], tuple[Entry, Entry | StoredContent | None]] = {}
            for path, register in page:
                found.pop(path, None)
                if register is not None and is_of_user(path):
                    lost = losers_of(register, value_of(tree.leaf(path)))
                    kept.update({(path, dot): (value, contents(path, value)) for dot, value in lost})
                    if lost:
                        found[path] = [dot for dot, _ in lost]
            keep_losers(self._database, kept)
        aside.affected.clear()
        held = holding_losers(self._database, ((path, dot) for path, dots in found.items() for dot in dots))
        aside.lost = found
        return held

    def _note_names(self, snapshot: Snapshot, aside: _Aside) -> list[tuple[Planned, Hash | None]]:
        """Returns which refs change, and makes ready what is noted of all; commits where that has changed."""
        database, references = self._database, snapshot.references
        registers = dict(self._seen.registers(MADE).below(REFERENCES))
        planned = [
            (one, self._trees.local(one.root, references))
            for one in plan_all_references(references, registers, self._seen.stable, self._seen.cluster)
        ]
        if aside.names is None:
            aside.names = {}
            with database.transaction(actor=ACTOR, message="make names ready") as changes:
                if database.system().get(READY) is not None:
                    changes.delete_system(READY)
        wanted: dict[tuple[str, str], Noted | None] = {
            (kind, name): one for kind in references.kinds() for name, one in references.noted(kind).items()
        }
        wanted.update(noted_of(planned))
        names = sorted(wanted.keys() | aside.names.keys())
        for page in pages_of(name for name in names if wanted.get(name) != aside.names.get(name)):
            rows = {name: wanted.get(name) for name in page}
            with database.transaction(actor=ACTOR, message="make names ready") as changes:
                note_references(changes, rows, database.system(), READY)
            for name, one in rows.items():
                if one is None:
                    aside.names.pop(name, None)
                else:
                    aside.names[name] = one
        return planned

    def _put_documents(
        self, changes: Transaction, snapshot: Snapshot, aside: _Aside, made: RegisterStore
    ) -> None:
        stable, documents = self._seen.stable, snapshot.documents
        if aside.documents is None:
            aside.documents = {path for path, _ in documents.walk(None)}
            aside.documents.update(path for path, _ in made.below(SYSTEM))
            aside.documents.update(path for path in stable if path[:2] == SYSTEM)
        for path in sorted(aside.documents):
            value = value_at(stable, made, path)
            document = value if isinstance(value, Document) else None
            is_own = document is None and not documents.travels(path)
            if is_own or document == documents.value(path):
                aside.documents.discard(path)
            else:
                replace_document(changes, documents, path, document)

    def _state(self, snapshot: Snapshot, aside: _Aside) -> State:
        own, seen, writer = snapshot.state, self._seen, self._node.writer
        known = row_of_returned(seen.known, own.known, self._distrusted)
        vt = max(own.vt, seen.vt, *known.values(), aside.vt)
        return replace(
            own,
            sequence=self._database.head().sequence,
            root=aside.root,
            vt=vt,
            known={**known, writer: vt},
            cluster=seen.cluster,
            is_level=False,
            partial=None,
            partial_vt=0,
            pruned={},
            pruned_scoped={},
            has_documents=True,
        )


def _contents_of(
    database: Database, snapshot: Snapshot, seen: SeenCluster
) -> Callable[[Path, Entry], Entry | StoredContent]:
    """Returns what finds a content in what this node has by now, or had when the copy began."""
    here = Contents(database, snapshot.tree)

    def find(path: Path, value: Entry) -> Entry | StoredContent:
        return here.find(path, value) or seen.contents.of(path, value)

    return find
