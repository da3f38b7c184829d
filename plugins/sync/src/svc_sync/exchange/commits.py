"""Stamping: what was committed here since becomes writes of registers, in one transaction a round."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from svc.errors import NotFound, PreconditionFailed, ServiceUnavailable, VersionCollected
from svc.plugin import (
    Commit,
    Database,
    Entry,
    Hash,
    Path,
    PathChange,
    TransactionRecord,
    Version,
    attempt,
    format_path,
    parse_path,
    seal,
    unseal,
)
from svc_sync.clock import next_vt
from svc_sync.cluster import Head
from svc_sync.exchange.documents import (
    Documents,
    begin_documents,
    is_too_large,
    note_documents,
    rule_of,
)
from svc_sync.exchange.reading import VersionTree, leaf_of
from svc_sync.exchange.records import (
    ACTOR,
    STAMPED,
    STATE,
    NodeRecord,
    State,
    ensure_node,
    find_node,
    put_state,
    read_state,
)
from svc_sync.exchange.references import (
    Noted,
    References,
    note_references,
    present_references,
    stamp_reference,
)
from svc_sync.exchange.store import RegisterStore, put_registers
from svc_sync.exchange.users import Write, put_users, user_of_paths
from svc_sync.registers import Dot, Register, winner
from svc_sync.scopes import REFERENCES, Scope, is_of_user
from svc_sync.stamping import stamp as stamp_path
from svc_sync.stamping import stamp_system
from svc_sync.tree import FULL, Leaf

__all__ = ["Snapshot", "UsersOfCommit", "log_holds", "own_row", "read_snapshot", "stamp"]

HEAD = "HEAD"
_HEAD_PURPOSE = "sync head"
ROUND_COMMITS = 256
ROUND_PATHS = 10_000
_IDLE_COMMITS = 1_000
"""Commits that changed nothing here are passed over again and again; behind so many it is written down."""
_MOST_ROUNDS = 10_000


class Snapshot(Struct, frozen=True):
    """A state of the node in which registers and tree say the same.

    Attributes:
        node: who it is.
        state: how far it is.
        entry: of the state, for the condition of what follows.
        registers: all of them.
        tree: the user tree.
        documents: those of the system tree.
        references: snapshots and forks.
    """

    node: NodeRecord
    state: State
    entry: Entry
    registers: RegisterStore
    tree: VersionTree
    documents: Documents
    references: References

    @property
    def scope(self) -> Scope:
        """What this node takes."""
        return self.state.cluster.scope_of(self.node.writer)

    def shown(self, path: Path) -> Leaf:
        """Returns what stands at the path of a register."""
        if is_of_user(path):
            return self.tree.leaf(path)
        return self.references.value(path) if path[:2] == REFERENCES else self.documents.value(path)


class _Round(Struct):
    """What one transaction stamps, of what the node takes."""

    state: State
    scope: Scope
    registers: dict[Path, Register | None] = field(default_factory=dict)
    documents: list[tuple[Path, Entry | None]] = field(default_factory=list)
    references: dict[tuple[str, str], Noted | None] = field(default_factory=dict)
    users: dict[Write, str] = field(default_factory=dict)
    paths: int = 0
    is_last: bool = True


def stamp(database: Database, *, level: bool = False) -> Snapshot:
    """Stamps all that is committed by now, and returns the state after it. Blocks; may commit.

    Args:
        database: the database.
        level: whether ``state.root`` is to be the tree of the snapshot, and its documents those of the node.

    Raises:
        ServiceUnavailable: others change the state all the time.
    """
    ensure_node(database)
    merges = _Merges(database)
    for _ in range(_MOST_ROUNDS):
        found = attempt(lambda: _stamp_once(database, level, merges), "The state of the cluster")
        if found is not None:
            return found
    raise ServiceUnavailable("There is more to stamp all the time.", retry_after=1)


def read_snapshot(database: Database) -> Snapshot:
    """Returns the state as it is, without stamping: commits behind ``state.sequence`` do not show in it."""
    system = database.system()
    node = find_node(system)
    state, entry = read_state(system)
    assert node is not None
    return _snapshot(database, node, state, entry, system, state.root)


def _snapshot(
    database: Database, node: NodeRecord, state: State, entry: Entry, system: Version, root: Hash
) -> Snapshot:
    tree = VersionTree(database.version_of(root))
    return Snapshot(node, state, entry, RegisterStore(system), tree, Documents(system), References(system))


def own_row(database: Database, node: NodeRecord, state: State) -> State:
    """Returns a state whose cluster says of this node what it knows, and of its log how far it goes."""
    identity = database.commit_identity(state.sequence)
    head = None
    if identity is not None:
        head = Head(state.known[node.writer], 0, _sealed_identity(database, state.sequence, identity))
    return replace(state, cluster=state.cluster.with_row(node.writer, state.known, head))


def log_holds(database: Database, head: Head) -> bool:
    """Whether this database's log holds a commit that others have seen of it."""
    if head.sequence:
        return database.commit_identity(head.sequence) == head.identity
    opened = unseal(database.database_id, head.identity, _HEAD_PURPOSE)
    if opened is None:
        return False
    sequence, _, identity = opened.decode().partition("-")
    found = database.commit_identity(int(sequence))
    return found is not None and found.hex() == identity


def _sealed_identity(database: Database, sequence: int, identity: bytes) -> bytes:
    """What others keep of a commit, and give back: how many there are is nothing that they are told."""
    return seal(database.database_id, f"{sequence}-{identity.hex()}".encode(), _HEAD_PURPOSE)


def _stamp_once(database: Database, level: bool, merges: _Merges) -> Snapshot | None:
    """Does one round; returns None when there are more."""
    head = database.head()
    system = database.version_of(head.system_root)
    node = find_node(system)
    state, entry = read_state(system)
    assert node is not None
    store = RegisterStore(system)
    scope = state.cluster.scope_of(node.writer)
    is_alone = len(state.cluster.members) == 1 and store.is_empty()
    if is_alone:
        work = _Round(_passed(state, head.sequence, head.root), scope)
    else:
        work = _gather(database, node, state, store, head.sequence, head.root, merges)
        if work.is_last and scope.is_whole:
            _gather_system(database, node, work, store, system)
    behind = head.sequence - state.sequence
    must_write = bool(work.registers) or not work.is_last or behind > _IDLE_COMMITS
    begins_documents = not is_alone and not state.has_documents and scope.is_whole
    is_level = state.is_level and state.root == head.root and not begins_documents
    if not must_write and (is_level or not level):
        return _snapshot(database, node, state, entry, system, head.root)
    after = own_row(database, node, work.state)
    try:
        with database.transaction(actor=ACTOR, message="stamp") as changes:
            if not work.state.partial:
                changes.set_ref(STAMPED, work.state.root)
            if begins_documents:
                begin_documents(changes, system)
                note_references(changes, present_references(database, system), system)
            note_documents(changes, work.documents, system)
            note_references(changes, work.references, system)
            put_registers(changes, store, work.registers)
            put_users(changes, work.users)
            put_state(changes, after, entry)
    except NotFound as error:
        raise PreconditionFailed("A register was forgotten meanwhile.") from error
    if not work.is_last:
        return None
    system = database.system()
    state, entry = read_state(system)
    if state != after:
        return None
    return _snapshot(database, node, state, entry, system, after.root)


def _passed(state: State, sequence: int, root: Hash) -> State:
    return replace(state, sequence=sequence, root=root, is_level=True, partial=None, partial_vt=0)


def _gather(
    database: Database,
    node: NodeRecord,
    state: State,
    store: RegisterStore,
    until: int,
    root: Hash,
    merges: _Merges,
) -> _Round:
    """Stamps commits up to a number, as many as one transaction may hold."""
    work = _Round(state, state.cluster.scope_of(node.writer))
    try:
        merges.read(state.sequence, until)
        for count, commit in enumerate(_commits(database, state.sequence, until)):
            if count == ROUND_COMMITS or work.paths >= ROUND_PATHS:
                work.is_last = False
                return work
            if not _stamp_commit(database, node, work, store, commit, merges):
                work.is_last = False
                return work
    except (VersionCollected, NotFound):
        # The trees between are gone: what is left of them is what differs from the version that is kept.
        return _gather_whole(database, node, state, store, until, root)
    return work


def _gather_system(
    database: Database, node: NodeRecord, work: _Round, store: RegisterStore, system: Version
) -> None:
    """Stamps what was changed of the system tree since it was stamped last, as much as a round may hold."""
    if not work.state.has_documents:
        work.state = replace(work.state, has_documents=True)
        return
    vt = next_vt(database.head().time_ms, work.state.vt)
    count = len(work.registers)
    _gather_references(database, work, store, References(system), Dot(vt, node.writer))
    _gather_documents(work, store, Documents(system), Dot(vt, node.writer))
    if len(work.registers) > count:
        work.state = replace(work.state, vt=vt, known={**work.state.known, node.writer: vt})


def _gather_references(
    database: Database, work: _Round, store: RegisterStore, references: References, dot: Dot
) -> None:
    for kind, name, noted, root in references.changes(database):
        work.paths += 1
        work.references[kind, name] = None if root is None else Noted(root, root, name)
        work.registers.update(
            stamp_reference(
                kind, name, noted, root, dot, lambda path: work.registers.get(path) or store.get(path)
            )
        )


def _gather_documents(work: _Round, store: RegisterStore, documents: Documents, dot: Dot) -> None:
    for path, old, new in documents.changes():
        if work.paths >= ROUND_PATHS:
            work.is_last = False
            break
        work.paths += 1
        work.documents.append((path, new))
        rule = rule_of(path)
        if rule is None or is_too_large(path, new):
            continue
        register = stamp_system(store.get(path), dot, documents.read(old), documents.read(new), rule)
        if register is not None:
            work.registers[path] = register


def _commits(database: Database, after: int, until: int) -> Iterator[Commit]:
    for commit in database.commits(after):
        if commit.sequence > until:
            return
        yield commit


def _stamp_commit(
    database: Database,
    node: NodeRecord,
    work: _Round,
    store: RegisterStore,
    commit: Commit,
    merges: _Merges,
) -> bool:
    """Stamps one commit, or a part of it: False."""
    state = work.state
    merged = _merged_paths(commit)
    if commit.root == commit.parent_root or merged is None:
        work.state = _passed(state, commit.sequence, commit.root)
        return True
    database.require_available(commit.parent_root)
    database.require_available(commit.root)
    before, now = database.version_of(commit.parent_root), database.version_of(commit.root)
    vt = state.partial_vt or next_vt(commit.time_ms, state.vt)
    after = None if state.partial is None else parse_path(state.partial)
    wrote = state.partial is not None
    users = UsersOfCommit(commit, Dot(vt, node.writer), work.users)
    for change in before.diff(now, after=after):
        if work.paths >= ROUND_PATHS:
            assert after is not None
            work.state = replace(state, vt=vt, partial_vt=vt, partial=format_path(after))
            return False
        after = change.path
        work.paths += 1
        if change.path not in merged and not merges.follow(commit.sequence, change.path):
            old, new = leaf_of(change.before), leaf_of(change.after)
            if _stamp_path(work, store, change.path, Dot(vt, node.writer), old, new):
                users.note(change.path)
                wrote = True
    passed = _passed(state, commit.sequence, commit.root)
    work.state = replace(passed, vt=vt, known={**state.known, node.writer: vt}) if wrote else passed
    return True


def _gather_whole(
    database: Database, node: NodeRecord, state: State, store: RegisterStore, until: int, root: Hash
) -> _Round:
    """Stamps what differs between the stamped version and HEAD, but for what was merged since."""
    work = _Round(state, state.cluster.scope_of(node.writer))
    vt = next_vt(database.head().time_ms, state.vt)
    for change in database.version_of(state.root).diff(database.version_of(root)):
        old, new = leaf_of(change.before), leaf_of(change.after)
        register = store.get(change.path)
        if register is not None and winner(register)[1].value == (None if new is FULL else new):
            continue
        _stamp_path(work, store, change.path, Dot(vt, node.writer), old, new)
    passed = _passed(state, until, root)
    work.state = replace(passed, vt=vt, known={**state.known, node.writer: vt})
    return work


def _stamp_path(work: _Round, store: RegisterStore, path: Path, dot: Dot, old: Leaf, new: Leaf) -> bool:
    if (old is None and new is FULL) or not work.scope.takes(path):
        # A directory that appears with what it holds replaces nothing: no write.
        return False
    present = work.registers[path] if path in work.registers else store.get(path)
    register = stamp_path(present, dot, old, new)
    if register is None:
        return False
    work.registers[path] = register
    return True


class _Merges:
    """Which paths exchanges have changed behind what is stamped, and with which commit last.

    A merge asks that a path is as it was when it was decided, not that nothing was written there: what was
    written and taken back before it is no write that came after it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: dict[Path, int] = {}
        self._whole = 0
        self._until = 0

    def read(self, after: int, until: int) -> None:
        """Reads the commits behind a number that were not read yet."""
        for commit in _commits(self._database, max(after, self._until), until):
            merged = _merged_paths(commit)
            if merged is None:
                self._whole = commit.sequence
            else:
                self._last.update(dict.fromkeys(merged, commit.sequence))
        self._until = max(self._until, until)

    def follow(self, sequence: int, path: Path) -> bool:
        """Whether an exchange has changed a path after a commit."""
        return max(self._whole, self._last.get(path, 0)) > sequence


class UsersOfCommit:
    """Notes who made the writes of a commit: once for all of them if they have one user."""

    def __init__(self, commit: Commit, dot: Dot, users: dict[Write, str]) -> None:
        records = [one for one in commit.transactions if one.ref == HEAD and one.origin is None]
        records = [one for one in records if any(_is_of_head(change) for change in one.changes)]
        self._is_one = len({one.actor for one in records}) == 1
        self._user_of = user_of_paths(records)
        self._dot = dot
        self._users = users

    def note(self, path: Path) -> None:
        """Notes who wrote a path."""
        user = self._user_of(path)
        if user is not None:
            self._users[Write.of(self._dot, None if self._is_one else path)] = user


def _is_of_head(change: PathChange) -> bool:
    return change.path == (HEAD,) if change.kind == "ref" else not change.system


def _merged_paths(commit: Commit) -> frozenset[Path] | None:
    """The paths that exchanges changed in a commit; None: all of them.

    Each transaction of an exchange that changes HEAD replaces the node's state too, which nobody else can.
    Only such a one merges, so all parts of the commit that have an origin are its parts.
    """
    if not any(_replaces_state(one) for one in commit.transactions):
        return frozenset()
    found: set[Path] = set()
    for one in commit.transactions:
        if one.origin is None and not _replaces_state(one):
            continue
        for change in one.changes:
            if change.kind == "ref" and change.path == (HEAD,):
                return None
            if change.kind != "ref" and not change.system:
                found.add(change.path)
    return frozenset(found)


def _replaces_state(record: TransactionRecord) -> bool:
    return any(change.system and change.path == STATE for change in record.changes)
