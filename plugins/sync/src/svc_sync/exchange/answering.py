"""What a node answers to another one. The transport has made sure that root asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from svc.errors import Conflict, Forbidden, NotFound, PayloadTooLarge
from svc.plugin import (
    Database,
    Entry,
    Hash,
    Path,
    Version,
    attempt,
    format_path,
    reference_path,
    run_blocking,
)
from svc_sync.api import MAXIMUM_QUESTION
from svc_sync.cluster import learn
from svc_sync.encoding import encode_register
from svc_sync.exchange.commits import Snapshot, log_holds, own_row, read_snapshot, stamp
from svc_sync.exchange.contents import Finder, Inline, answer_objects
from svc_sync.exchange.marks import name_of_place
from svc_sync.exchange.messages import (
    HelloAnswer,
    HelloMessage,
    ObjectsMessage,
    PageAnswer,
    PageMessage,
    PullAnswer,
    PullMessage,
    TreeAnswer,
    TreeMessage,
    check_cluster,
    decode_message,
    encode_message,
    hello_of,
    read_path,
    read_register_path,
)
from svc_sync.exchange.parts import HIDDEN_ROOT, leaves_below, open_cursor, seal_cursor
from svc_sync.exchange.peers import note_heard, status_of, take_peer, wait_for_try, wake
from svc_sync.exchange.records import ACTOR, JOINING, now_ms, peers_of, put_state
from svc_sync.exchange.trees import has_version, leaves_of
from svc_sync.exchange.users import WriteUsers, users_of_page
from svc_sync.hello import PROTOCOL, Hello, Meeting, Verdict, judge
from svc_sync.pages import MAXIMUM_BYTES, MAXIMUM_REGISTERS, select_page
from svc_sync.registers import Register, restate
from svc_sync.scopes import REFERENCES, Scope, register_path_text
from svc_sync.values import Document, Value

__all__ = ["QUESTIONS", "answer", "hello_of_node"]

_OLDEST_HELLO_MS = 60_000
_LONGEST_WAIT_MS = 30_000
_TREE_ENTRIES = 1_000
_LOOKED_AT = 50_000
"""So many leaves are looked at for a page, whatever a member takes of them."""
_LOOKS_S = 1.0
"""So long leaves are looked at for a page; at least one is."""
_MAXIMUM_OTHER = 64 << 10
"""Bytes of a question that tells nothing of the members."""
T = TypeVar("T")


def answer(database: Database, question: str, payload: bytes) -> bytes:
    """Returns the answer to a question of another node; blocks, may commit.

    Args:
        database: this node's.
        question: its name.
        payload: CBOR.

    Raises:
        NotFound: there is no such question; or a content is gone.
        InvalidInput: it is malformed.
        PayloadTooLarge: it has more bytes than any node sends.
        Forbidden: the asker is no member of this cluster.
        Conflict: this node takes part in no cluster yet, or is being copied to.
    """
    found = QUESTIONS.get(question)
    if found is None:
        raise NotFound("There is no such question.", question=question[:100])
    limit = MAXIMUM_QUESTION if question == "hello" else _MAXIMUM_OTHER
    if len(payload) > limit:
        raise PayloadTooLarge(f"This question has at most {limit} bytes.", limit=limit)
    return found(database, payload)


def _read(payload: bytes, form: type[T]) -> T:
    """Returns a message, which is decoded beside what else the process does."""
    message: T = run_blocking(decode_message, payload, form)
    return message


def hello_of_node(snapshot: Snapshot) -> Hello:
    """Returns what a node says of itself."""
    node, state = snapshot.node, snapshot.state
    return Hello(PROTOCOL, node.cluster_id, state.cluster.members[node.writer], state.known, state.cluster)


def _hello(database: Database, payload: bytes) -> bytes:
    t2 = now_ms()
    message = _read(payload, HelloMessage)
    check_cluster(message.member, message.known, message.cluster, t2)
    snapshot = _taking_part(stamp(database))
    theirs = hello_of(message)
    verdict = _judge_asker(database, snapshot, message, t2)
    if verdict is Verdict.ACCEPT and message.is_marked:
        snapshot = _learn_from(database, theirs, message)
        note_heard(database, theirs.member.node_id)
    mine = hello_of_node(snapshot)
    # What a member takes was said when it joined: it does not take more because it says so now.
    asker = snapshot.state.cluster.members.get(message.member.writer, message.member)
    said = HelloAnswer(
        protocol=mine.protocol,
        cluster_id=mine.cluster_id,
        member=mine.member,
        known=dict(mine.known),
        cluster=mine.cluster,
        verdict=verdict.value,
        head=snapshot.tree.version.root if Scope(asker.scope).is_whole else b"",
        t2=t2,
        t3=now_ms(),
        your_address=_address_of(database, theirs.member.node_id),
        place=name_of_place(database) if verdict is Verdict.MY_OWN_WRITER else "",
    )
    return encode_message(said)


def _address_of(database: Database, node_id: int) -> str:
    found = (peer.address for peer in peers_of(database.system()) if peer.node_id == node_id)
    return next(found, "")


def _judge_asker(database: Database, snapshot: Snapshot, message: HelloMessage, t2: int) -> Verdict:
    """One message tells the offset within its travel; what is older than a minute is no hello of now."""
    offset = message.t1 - t2
    if abs(offset) > _OLDEST_HELLO_MS:
        return Verdict.CLOCKS_APART
    mine = hello_of_node(snapshot)
    return judge(Meeting(mine, hello_of(message), 0, partial(log_holds, database)))


def _learn_from(database: Database, theirs: Hello, message: HelloMessage) -> Snapshot:
    """Takes over what the asker knows of the members, and where it can be reached."""

    def once() -> Snapshot:
        snapshot = stamp(database)
        cluster = learn(snapshot.state.cluster, theirs.cluster)
        writer = theirs.member.writer
        known = snapshot.state.cluster.heads.get(writer)
        if known is not None:
            # The asker has not said yet that its log holds this commit: a later one of another log must not
            # take the place of what tells that it was put back.
            cluster = replace(cluster, heads={**cluster.heads, writer: known})
        if snapshot.node.writer in cluster.removed:
            raise Forbidden("This node was removed from the cluster.")
        state = replace(snapshot.state, cluster=cluster)
        place = reference_path(f"{JOINING}{theirs.member.node_id}")
        is_copied = database.system().get(place) is not None
        if cluster == snapshot.state.cluster and not is_copied:
            return snapshot
        with database.transaction(actor=ACTOR, message="learn of the cluster") as changes:
            put_state(changes, own_row(database, snapshot.node, state), snapshot.entry)
            if is_copied:
                # It says hello, so it has its first copy.
                changes.set_ref(f"{JOINING}{theirs.member.node_id}", None)
        return stamp(database)

    try:
        snapshot = attempt(once, "The state of the cluster")
    except NotFound as error:
        raise Conflict("The state of the cluster changed; try again.") from error
    if message.address and theirs.member.writer in snapshot.state.cluster.members:
        _note_address(database, theirs.member.node_id, message)
    return snapshot


def _note_address(database: Database, node_id: int, message: HelloMessage) -> None:
    """Takes note of where the asker is reached, unless it is reached already: root may have said how."""
    for peer in peers_of(database.system()):
        if peer.node_id == node_id:
            if status_of(database, node_id).failing_since is not None:
                take_peer(database, node_id, message.address, peer.label)
            return
    take_peer(database, node_id, message.address, message.label)


def _registers(database: Database, payload: bytes) -> bytes:
    message = _read(payload, PageMessage)
    snapshot = _known_asker(_taking_part(stamp(database)), message.cluster_id, message.asker)
    after = None if message.after is None else read_register_path(message.after)
    state, store = snapshot.state, snapshot.registers
    limit = max(1, min(message.limit, MAXIMUM_REGISTERS))
    asker, mine = state.cluster.scope_of(message.asker), snapshot.scope
    rows, last = select_page(
        store.unknown_to(message.known, after, asker),
        store.get,
        message.known,
        lambda path: asker.takes(path) and mine.takes(path),
        after=after,
        limit=limit,
    )
    inline = Inline(Finder(database, snapshot.tree.version))
    for path, register in rows:
        for value in _files_of(register):
            inline.add(path, value)
    page = PageAnswer(
        member=state.cluster.members[snapshot.node.writer],
        known=dict(state.known),
        cluster=state.cluster,
        registers=[(register_path_text(path), encode_register(register)) for path, register in rows],
        last=last,
        contents=inline.contents,
        users=users_of_page(rows, WriteUsers(database.system())),
    )
    return encode_message(page)


def _files_of(register: Register) -> list[Entry]:
    values: list[Value] = [version.value for version in register.versions.values()]
    return [value for value in values if isinstance(value, Entry)]


def _tree(database: Database, payload: bytes) -> bytes:
    """Leaves of the version that is kept for a joiner, or of a snapshot or fork."""
    message = _read(payload, TreeMessage)
    snapshot = _known_asker(_taking_part(read_snapshot(database)), message.cluster_id, message.asker)
    scope = snapshot.state.cluster.scope_of(message.asker)
    if message.of_system and not scope.is_whole:
        raise Forbidden("A member that takes a part only gets nothing of the system.")
    if message.of_system:
        return encode_message(_document_leaves(snapshot, message.after))
    version = database.version_of(_readable_root(database, snapshot, message.asker, message.root))
    if not scope.is_whole:
        return encode_message(_leaves_of_part(database, version, scope, message.after))
    base = next((one for one in message.bases if has_version(database, one)), None)
    inline = Inline(Finder(database, version))
    leaves: list[tuple[str, bytes]] = []
    after = None if message.after is None else read_path(message.after)
    last: Path | None = None
    compared = None if base is None else database.version_of(base)
    for path, leaf in leaves_of(compared, version, after):
        is_full = len(leaves) == _TREE_ENTRIES
        if is_full or (isinstance(leaf, Entry) and not inline.add(path, leaf) and leaves):
            assert last is not None
            return encode_message(
                TreeAnswer(leaves=leaves, contents=inline.contents, after=format_path(last), base=base)
            )
        leaves.append((format_path(path), encode_register(restate(leaf))))
        last = path
    return encode_message(TreeAnswer(leaves=leaves, contents=inline.contents, after=None, base=base))


def _readable_root(database: Database, snapshot: Snapshot, asker: int, root: Hash) -> Hash:
    """Returns what stands here for a version that a member may ask for: NotFound for any other."""
    kept = _kept_root(database, snapshot, asker)
    is_whole = snapshot.state.cluster.scope_of(asker).is_whole
    if kept is not None and root == (kept if is_whole else HIDDEN_ROOT):
        return kept
    local = snapshot.references.local_root(root) if is_whole else None
    if local is None:
        raise NotFound("This version is not kept any more.", version=root.hex())
    return local


def _leaves_of_part(database: Database, version: Version, scope: Scope, cursor: str | None) -> TreeAnswer:
    """A page of the leaves that a member takes. Where it ends may be hidden from the member: it is sealed."""
    inline = Inline(Finder(database, version))
    leaves: list[tuple[str, bytes]] = []
    last: Path = ()
    end = time.monotonic() + _LOOKS_S
    for count, (path, leaf) in enumerate(leaves_below(version, scope, open_cursor(database, cursor))):
        is_taken = scope.takes(path)
        is_late = count > 0 and time.monotonic() >= end
        is_full = len(leaves) == _TREE_ENTRIES or count == _LOOKED_AT or is_late
        if is_full or (is_taken and isinstance(leaf, Entry) and not inline.add(path, leaf) and leaves):
            after = seal_cursor(database, last)
            return TreeAnswer(leaves=leaves, contents=inline.contents, after=after)
        if is_taken:
            leaves.append((format_path(path), encode_register(restate(leaf))))
        last = path
    return TreeAnswer(leaves=leaves, contents=inline.contents, after=None)


def _system_rows(snapshot: Snapshot, after: Path | None) -> Iterator[tuple[Path, Value]]:
    if after is None or after[:2] == REFERENCES:
        yield from snapshot.references.rows(after)
        after = None
    yield from snapshot.documents.walk(after)


def _document_leaves(snapshot: Snapshot, text: str | None) -> TreeAnswer:
    """Names and documents as they are now: what changes until the joiner pulls has a register."""
    leaves: list[tuple[str, bytes]] = []
    size = 0
    after = None if text is None else read_register_path(text)
    for path, value in _system_rows(snapshot, after):
        if len(leaves) == _TREE_ENTRIES or size > MAXIMUM_BYTES:
            return TreeAnswer(leaves=leaves, contents=[], after=leaves[-1][0])
        leaves.append((register_path_text(path), encode_register(restate(value))))
        size += len(value.data) if isinstance(value, Document) else 0
    return TreeAnswer(leaves=leaves, contents=[], after=None)


def _objects(database: Database, payload: bytes) -> bytes:
    message = _read(payload, ObjectsMessage)
    snapshot = _known_asker(_taking_part(read_snapshot(database)), message.cluster_id, message.asker)
    version = database.at()
    if message.root is not None:
        version = database.version_of(_readable_root(database, snapshot, message.asker, message.root))
    path = None if message.path is None else read_path(message.path)
    scope = snapshot.state.cluster.scope_of(message.asker)
    if not scope.is_whole and (path is None or not scope.takes(path)):
        raise NotFound("There is no such file for this member.")
    return encode_message(
        answer_objects(database, Finder(database, version), path, message, of_path=not scope.is_whole)
    )


def _pull(database: Database, payload: bytes) -> bytes:
    """The asker has something new: the background process pulls. Waits for that, if the asker does."""
    message = _read(payload, PullMessage)
    snapshot = _known_asker(_taking_part(read_snapshot(database)), message.cluster_id, message.asker)
    node_id = snapshot.state.cluster.members[message.asker].node_id
    began = now_ms()
    wake(database)
    if message.wait_ms <= 0:
        return encode_message(PullAnswer())
    status = wait_for_try(database, node_id, began, min(message.wait_ms, _LONGEST_WAIT_MS) / 1_000)
    if status is None:
        return encode_message(PullAnswer(error="The node has not pulled in time."))
    return encode_message(PullAnswer(pulled=status.pulled, error=status.last_error))


def _kept_root(database: Database, snapshot: Snapshot, asker: int) -> Hash | None:
    node_id = snapshot.state.cluster.members[asker].node_id
    entry = database.system().get(reference_path(f"{JOINING}{node_id}"))
    return None if entry is None else entry.hash


def _taking_part(snapshot: Snapshot) -> Snapshot:
    if snapshot.node.copying is not None:
        raise Conflict("This node has not got its first copy yet.")
    return snapshot


def _known_asker(snapshot: Snapshot, cluster_id: str, asker: int) -> Snapshot:
    if cluster_id != snapshot.node.cluster_id or asker not in snapshot.state.cluster.members:
        raise Forbidden("The asker is no member of this cluster.")
    if asker == snapshot.node.writer:
        raise Forbidden("The asker has the identity of this node: it is a copy of its database.")
    return snapshot


QUESTIONS: dict[str, Callable[[Database, bytes], bytes]] = {
    "hello": _hello,
    "registers": _registers,
    "tree": _tree,
    "objects": _objects,
    "pull": _pull,
}
"""What can be asked."""
