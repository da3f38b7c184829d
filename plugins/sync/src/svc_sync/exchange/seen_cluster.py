"""What a member holds, copied beside what this node has: tree, documents, names and registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from msgspec.structs import replace

from svc.errors import Conflict, InvalidInput, ServiceUnavailable
from svc.plugin import Change, Database, Entry, EntryKind, Hash, Path, StoredContent
from svc_sync.cluster import Cluster, Horizons, Member, learn
from svc_sync.exchange.contents import Fetcher
from svc_sync.exchange.documents import rule_of
from svc_sync.exchange.links import Link
from svc_sync.exchange.losers import Losers
from svc_sync.exchange.messages import (
    ObjectsMessage,
    PageMessage,
    TreeMessage,
    check_kinds,
    read_page,
    read_register,
    read_register_path,
)
from svc_sync.exchange.reading import VersionTree, leaf_of
from svc_sync.exchange.records import ACTOR, now_ms
from svc_sync.exchange.store import SEEN, Places, RegisterStore, forget_returning, put_registers
from svc_sync.exchange.trees import TreeCopier, has_version
from svc_sync.pages import is_current
from svc_sync.registers import Register, Rule, join, winner
from svc_sync.scopes import REFERENCES, Scope, is_of_user, register_path_text
from svc_sync.tree import FULL, Leaf, apply
from svc_sync.values import Document, Reference, Value

__all__ = ["Contents", "SeenCluster", "pages_of", "see_cluster", "value_at"]

T = TypeVar("T")

_MOST_AGAIN = 100
_PAGE = 1_000


class Contents:
    """Contents of files that were found here, or fetched.

    Args:
        database: of this node.
        trees: where to look.
    """

    def __init__(self, database: Database, *trees: VersionTree) -> None:
        self._trees = trees
        self._losers = Losers(database)
        self._fetched: dict[tuple[Hash, int], StoredContent] = {}

    def take(self, path: Path, value: Entry, fetch: Fetcher) -> None:
        """Fetches a content that is not here."""
        if self.find(path, value) is None and (value.hash, value.size) not in self._fetched:
            self._fetched[value.hash, value.size] = fetch(path, value)

    def of(self, path: Path, value: Entry) -> Entry | StoredContent:
        """Returns an entry with the value's times and the record of this database, or what was stored."""
        found = self.find(path, value)
        if found is not None:
            return found
        stored = self._fetched.get((value.hash, value.size))
        if stored is None:
            raise InvalidInput("A content was neither here nor named by the other node.")
        return stored

    def find(self, path: Path, value: Entry) -> Entry | None:
        """Returns what ``of`` returns of a content that was here; None of any other."""
        if value.kind is not EntryKind.FILE or value.size == 0:
            return value
        for entry in (*(tree.entry(path) for tree in self._trees), self._losers.find(path, value.hash)):
            if (
                entry is not None
                and entry.kind is EntryKind.FILE
                and (entry.hash, entry.size) == (value.hash, value.size)
            ):
                return replace(value, record=entry.record)
        return None


class SeenCluster:
    """What a member holds.

    Attributes:
        tree: the user tree that its registers make.
        stable: documents and names as they are without registers, by the paths of registers.
        known: the member's row, when it made the first page.
        cluster: what it knows of the members, this node's new life among them.
        vt: the latest virtual time in all of this.
        contents: of the files that registers name.
        scope: what this node takes. The rest of the tree is its own.
    """

    def __init__(
        self,
        database: Database,
        tree: VersionTree,
        cluster: Cluster,
        contents: Contents,
        own: VersionTree,
        scope: Scope,
    ) -> None:
        self._database = database
        self.tree = tree
        self.scope = scope
        self._own = own
        self.cluster = cluster
        self.contents = contents
        self.stable: dict[Path, Value] = {}
        self.known: Mapping[int, int] = {}
        self.vt = 0

    def registers(self, places: Places = SEEN) -> RegisterStore:
        """Returns the registers that stand aside, as they are by now."""
        return RegisterStore(self._database.system(), places)

    def require_same_rest(self, tree: VersionTree) -> None:
        """Raises Conflict where something was changed in this node's tree that it does not exchange."""
        changes = self._own.version.diff(tree.version)
        if any(not self.scope.takes(change.path) and _is_of_leaf(change) for change in changes):
            raise Conflict("Files outside of this node's paths were changed meanwhile; try again.")

    def shown(self, path: Path, registers: RegisterStore) -> Leaf:
        """Returns what stands at the path of a register."""
        return self.tree.leaf(path) if is_of_user(path) else value_at(self.stable, registers, path)


def _is_of_leaf(change: Change) -> bool:
    return any(leaf_of(entry) not in (None, FULL) for entry in (change.before, change.after))


def value_at(stable: Mapping[Path, Value], registers: RegisterStore, path: Path) -> Value:
    """Returns what stands at the path of a document or name."""
    register = registers.get(path)
    if register is None:
        return stable.get(path)
    return winner(register, rule_of(path) or Rule.LAST_WRITER)[1].value


def see_cluster(
    database: Database,
    link: Link,
    own: VersionTree,
    member: Member,
    root: Hash,
    cluster: Cluster,
    cluster_id: str,
) -> tuple[SeenCluster, TreeCopier]:
    """Copies what a member holds that has let this node in; commits, but nothing that counts yet.

    Args:
        database: of this node.
        link: to the member.
        own: this node's tree: what is in it does not travel.
        member: this node's new life.
        root: the version that the member keeps for it.
        cluster: what is known of the members.
        cluster_id: its id.

    Raises:
        InvalidInput: the member has sent what no node sends.
        NotFound: a content has gone meanwhile: begin anew.
    """
    trees = TreeCopier(database, link, cluster_id, member.writer)
    scope = Scope(member.scope)
    copied = trees(root, [own.version.root], scope)
    tree = VersionTree(database.version_of(copied))
    seen = SeenCluster(database, tree, cluster, Contents(database, tree, own), own, scope)
    system_rows = _system_rows(link, cluster_id, member.writer, root) if scope.is_whole else ()
    for path, value in system_rows:
        if rule_of(path) is not None:
            seen.stable[path] = value
            if isinstance(value, Reference) and not has_version(database, value.root):
                trees(value.root, [copied])
    _read_registers(database, link, seen, cluster_id, member)
    for _, register in seen.registers().below(REFERENCES):
        for version in register.versions.values():
            # Also what has lost a name: it stands under another one.
            if isinstance(version.value, Reference) and not has_version(database, version.value.root):
                trees(version.value.root, [copied])
    for page in pages_of(seen.registers().items()):
        apply_page(database, seen, trees, root, [path for path, _ in page if is_of_user(path)])
    return seen, trees


def pages_of(rows: Iterable[T]) -> Iterator[list[T]]:
    """Yields rows in parts that a transaction may have."""
    rows = iter(rows)
    while page := list(islice(rows, _PAGE)):
        yield page


def apply_page(
    database: Database, seen: SeenCluster, trees: TreeCopier, root: Hash, paths: list[Path]
) -> None:
    """Brings the copied tree to what some of the registers say; commits."""
    store = seen.registers()
    edits = apply(seen.tree, paths, store.get)
    if edits.restated:
        with database.transaction(actor=ACTOR, message="restate displaced files") as changes:
            put_registers(changes, store, edits.restated)
    if edits.removed or edits.put:
        seen.tree = VersionTree(database.version_of(trees.edit(root, edits, seen.contents.of)))


def _system_rows(
    link: Link, cluster_id: str, asker: int, root: Hash
) -> Iterator[tuple[Path, Document | Reference]]:
    after: str | None = None
    while True:
        answer = link.tree(
            TreeMessage(cluster_id=cluster_id, asker=asker, root=root, after=after, of_system=True)
        )
        for text, payload in answer.leaves:
            path, register = read_register_path(text), read_register(payload, now_ms())
            check_kinds(path, register)
            value = winner(register)[1].value
            if isinstance(value, Document | Reference):
                yield path, value
        if answer.after is None:
            return
        if not answer.leaves or answer.after != answer.leaves[-1][0]:
            raise InvalidInput("The other node has sent a page of documents that leads nowhere.")
        after = answer.after


def _read_registers(
    database: Database, link: Link, seen: SeenCluster, cluster_id: str, member: Member
) -> None:
    """Pulls all registers, as ``pull`` does, and keeps them aside page by page."""
    with database.transaction(actor=ACTOR, message="begin to join anew") as changes:
        forget_returning(changes, database.system())
    after: str | None = None
    is_first, again = True, 0
    while True:
        asked = PageMessage(cluster_id=cluster_id, asker=member.writer, known={}, after=after, limit=_PAGE)
        answer = link.registers(asked)
        page = read_page(answer, now_ms())
        if is_first:
            seen.known, is_first = dict(page.known), False
        seen.cluster = learn(seen.cluster, page.cluster)
        if not is_current(page, answer.member.writer, seen.cluster):
            again += 1
            if again > _MOST_AGAIN:
                raise ServiceUnavailable("The cluster learns faster than pages travel.", retry_after=1)
            continue
        fetch = Fetcher(
            database,
            link.objects,
            ObjectsMessage(cluster_id=cluster_id, asker=member.writer),
            answer.contents,
        )
        horizons, store = Horizons(seen.cluster), seen.registers()
        taken: dict[Path, Register | None] = {}
        for path, register in page.registers:
            if rule_of(path) is None or not seen.scope.takes(path):
                continue
            joined = join(store.get(path), register, horizons.of(path))
            assert joined is not None
            taken[path] = joined
            seen.vt = max(seen.vt, *register.context.values(), 0)
            for version in joined.versions.values():
                if isinstance(version.value, Entry):
                    seen.contents.take(path, version.value, fetch)
        with database.transaction(actor=ACTOR, message="see registers of the cluster") as changes:
            put_registers(changes, store, taken)
        if page.last:
            return
        after = register_path_text(page.registers[-1][0])
