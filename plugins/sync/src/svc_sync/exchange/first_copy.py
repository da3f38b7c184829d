"""The first copy of a node that joins with nothing: the tree of a member page by page, then its registers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from svc.errors import Conflict, InvalidInput, SvcError
from svc.plugin import (
    EMPTY_ROOT,
    Database,
    Entry,
    Origin,
    Path,
    Transaction,
    attempt,
    reference_path,
    same_content,
)
from svc_sync.checking import check_value
from svc_sync.exchange.commits import stamp
from svc_sync.exchange.contents import MOST_BYTES, Fetcher
from svc_sync.exchange.copying_documents import copy_documents
from svc_sync.exchange.documents import take_copied
from svc_sync.exchange.links import Link
from svc_sync.exchange.membership import require_directories, require_room
from svc_sync.exchange.merging import put_value
from svc_sync.exchange.messages import (
    ObjectsMessage,
    TreeAnswer,
    TreeMessage,
    read_path,
    read_register,
)
from svc_sync.exchange.parts import begin_part, follow_rest
from svc_sync.exchange.pulling import greet, pull
from svc_sync.exchange.reading import leaf_of
from svc_sync.exchange.records import (
    ACTOR,
    COPY,
    NODE,
    STAMPED,
    Copying,
    NodeRecord,
    find_node,
    now_ms,
    peers_of,
    put_state,
    read_state,
)
from svc_sync.exchange.references import take_copied_references
from svc_sync.exchange.trees import PARTIAL
from svc_sync.registers import winner
from svc_sync.scopes import Scope
from svc_sync.values import Value

__all__ = ["continue_copy"]

logger = logging.getLogger("svc.sync")


def continue_copy(
    database: Database,
    link: Link,
    *,
    address: str = "",
    label: str = "",
    is_stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Goes on with the first copy, from where it was left off; returns whether it is complete.

    Args:
        database: of this node.
        link: to the member that is copied.
        address: of this node.
        label: of this node.
        is_stopping: whether to leave off.

    Raises:
        Conflict: files were stored here meanwhile, or the node has joined anew.
        NotFound: the member keeps the version no more: join again.
    """
    node = find_node(database.system())
    if node is None or node.copying is None:
        return True
    if not node.copying.has_tree:
        node = _copy_tree(database, link, node, is_stopping)
        if node is None:
            return False
        if _scope(database, node).is_whole:
            node = copy_documents(database, link, node)
        node = _take_head(database, node)
    copying = node.copying
    assert copying is not None
    met = greet(database, link, address=address, label=label, ends_copy=True)
    pull(database, link, met.answer.member, is_stopping=is_stopping, from_nothing=True)
    if is_stopping():
        return False
    entry = database.system().get(NODE)
    with database.transaction(actor=ACTOR, message="the first copy is complete") as changes:
        changes.put_system(
            NODE, msgspec.json.encode(replace(node, copying=None)), condition=same_content(entry)
        )
        changes.set_ref(COPY, None)
        for ref, _ in database.refs("sync"):
            if ref.startswith(PARTIAL):
                changes.set_ref(ref, None)
    return True


def _scope(database: Database, node: NodeRecord) -> Scope:
    state, _ = read_state(database.system())
    return state.cluster.scope_of(node.writer)


def _copy_tree(
    database: Database, link: Link, node: NodeRecord, is_stopping: Callable[[], bool]
) -> NodeRecord | None:
    """Copies the leaves of the kept version in order of their paths; returns None if it was left off."""
    scope = _scope(database, node)
    assert node.copying is not None
    # An svc before this one noted its own tree with the first page only.
    if node.copying.own is None and node.copying.after is None:
        own = EMPTY_ROOT if scope.is_whole else database.head().root
        begin_part(database, COPY, scope, own)
        node = _put_part(database, node, replace(node.copying, own=own), lambda changes: None)
    else:
        node = _follow_own(database, node, scope)
    while not is_stopping():
        copying = node.copying
        assert copying is not None
        answer = link.tree(
            TreeMessage(cluster_id=node.cluster_id, asker=node.writer, root=copying.root, after=copying.after)
        )
        node = _put_page(database, link, node, answer, scope)
        if answer.after is None:
            return node
    return None


def _put_page(
    database: Database, link: Link, node: NodeRecord, answer: TreeAnswer, scope: Scope
) -> NodeRecord:
    """Puts the leaves of a page."""
    copying = node.copying
    assert copying is not None
    message = ObjectsMessage(cluster_id=node.cluster_id, asker=node.writer, root=copying.root)
    fetch = Fetcher(database, link.objects, message, answer.contents)
    now = now_ms()
    leaves = [(read_path(text), winner(read_register(leaf, now))[1].value) for text, leaf in answer.leaves]
    copied = database.system().get(reference_path(COPY))
    assert copied is not None
    present = database.version_of(copied.hash)
    # The last page comes again if what follows it has failed, and one that was interrupted.
    leaves = [
        (path, value) for path, value in leaves if scope.takes(path) and leaf_of(present.get(path)) != value
    ]
    require_directories(present, (path for path, _ in leaves))

    def put(changes: Transaction, part: list[tuple[Path, Value]]) -> None:
        for path, value in part:
            _put_leaf(changes, path, value, fetch, present.get(path))

    *parts, last = _parts(leaves)
    for part in parts:
        _put_part(database, node, copying, partial(put, part=part))
    after = copying.after if answer.after is None else answer.after
    return _put_part(database, node, replace(copying, after=after), partial(put, part=last))


def _put_part(
    database: Database, node: NodeRecord, copying: Copying, put: Callable[[Transaction], None]
) -> NodeRecord:
    """One transaction: leaves, and how far the copy is."""
    system = database.system()
    if find_node(system) != node:
        raise Conflict("This node has joined anew meanwhile.")
    then = replace(node, copying=copying)
    transaction = database.transaction(actor=ACTOR, message="first copy", ref=COPY, checks_contents=False)
    with transaction as changes:
        put(changes)
        changes.put_system(NODE, msgspec.json.encode(then), condition=same_content(system.get(NODE)))
    return then


def _parts(leaves: list[tuple[Path, Value]]) -> list[list[tuple[Path, Value]]]:
    """Cuts a page where its files are many bytes: an interruption costs no more. At least one part."""
    parts: list[list[tuple[Path, Value]]] = [[]]
    size = 0
    for path, value in leaves:
        own = value.size if isinstance(value, Entry) else 0
        if size + own > MOST_BYTES and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append((path, value))
        size += own
    return parts


def _follow_own(database: Database, node: NodeRecord, scope: Scope) -> NodeRecord:
    """Brings to a copy that goes on what was changed here outside of a scope since it was left off."""
    copying = node.copying
    assert copying is not None
    head = database.head().root
    if scope.is_whole or copying.own is None or copying.own == head:
        return node
    follow_rest(database, COPY, scope, copying.own, head)
    after = replace(node, copying=replace(copying, own=head))
    entry = database.system().get(NODE)
    with database.transaction(actor=ACTOR, message="follow the rest") as changes:
        changes.put_system(NODE, msgspec.json.encode(after), condition=same_content(entry))
    return after


def _put_leaf(changes: Any, path: Path, value: Any, fetch: Fetcher, before: Entry | None) -> None:
    def content_of(at: Path, file: Any) -> Any:
        is_here = file.target is not None or file.size == 0
        return file if is_here else fetch(at, file)

    if value is None:
        raise InvalidInput("The other node has sent a leaf that is none.")
    check_value(value)
    try:
        put_value(changes, path, value, content_of, before)
    except SvcError as error:
        raise InvalidInput(f"The other node has sent a leaf that can't be: {error}") from error


def _take_head(database: Database, node: NodeRecord) -> NodeRecord:
    """HEAD becomes what was copied, in one transaction with the node's state."""
    copying = node.copying
    assert copying is not None
    copied = database.system().get(reference_path(COPY))
    assert copied is not None
    scope = _scope(database, node)
    if scope.is_whole and copied.hash != copying.root:
        logger.warning("the first copy has another root than the version of the member")
    after = replace(node, copying=replace(copying, has_tree=True, after=None, own=None))
    followed = copying.own
    members = (peer for peer in peers_of(database.system()) if peer.address == copying.address.rstrip("/"))
    origin = next((Origin(member.node_id) for member in members), None)

    def once() -> None:
        nonlocal followed
        snapshot = stamp(database)
        require_room(database, scope, brings=False)
        head = database.head()
        if not scope.is_whole and followed is not None:
            follow_rest(database, COPY, scope, followed, head.root)
            followed, head = head.root, database.head()
        entry = database.system().get(reference_path(COPY))
        assert entry is not None
        copied = entry.hash
        state = replace(
            snapshot.state,
            sequence=head.sequence,
            root=copied,
            is_level=False,
            partial=None,
            partial_vt=0,
            has_documents=True,
        )
        entry = database.system().get(NODE)
        with database.transaction(actor=ACTOR, message="take the first copy") as changes:
            if scope.is_whole:
                system = database.version_of(head.system_root)
                take_copied(changes, system)
                take_copied_references(changes, system, node.node_id)
            with changes.merging(origin):
                changes.set_ref("HEAD", copied, expected=head.root)
            changes.set_ref(STAMPED, copied)
            changes.put_system(NODE, msgspec.json.encode(after), condition=same_content(entry))
            put_state(changes, state, snapshot.entry)

    attempt(once, "HEAD")
    return after
