"""The system tree in a first copy: documents and names, page by page to a place aside."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from svc.errors import InvalidInput
from svc.plugin import EMPTY_ROOT, Database, Path, reference_path, same_content
from svc_sync.exchange.documents import COPIED, rule_of
from svc_sync.exchange.links import Link
from svc_sync.exchange.messages import TreeMessage, check_kinds, read_register, read_register_path
from svc_sync.exchange.records import ACTOR, COPY, NODE, NodeRecord, now_ms
from svc_sync.exchange.references import COPIED_REFERENCES, note_copied
from svc_sync.exchange.trees import TreeCopier, has_version
from svc_sync.registers import winner
from svc_sync.values import Document, Reference

__all__ = ["copy_documents"]


def copy_documents(database: Database, link: Link, node: NodeRecord) -> NodeRecord:
    """Copies the documents of a member, from where it was left off; returns the node's record after it.

    Raises:
        InvalidInput: the member has sent what is no document.
    """
    trees = TreeCopier(database, link, node.cluster_id, node.writer)
    whole = database.system().get(reference_path(COPY))
    copied = EMPTY_ROOT if whole is None else whole.hash
    while True:
        copying = node.copying
        assert copying is not None
        asked = TreeMessage(
            cluster_id=node.cluster_id,
            asker=node.writer,
            root=copying.root,
            after=copying.documents_after,
            of_system=True,
        )
        answer = link.tree(asked)
        if answer.after is not None and (not answer.leaves or answer.after != answer.leaves[-1][0]):
            raise InvalidInput("The other node has sent a page of documents that leads nowhere.")
        rows = [row for row in (_read(text, payload) for text, payload in answer.leaves) if rule_of(row[0])]
        roots = [value.root for _, value in rows if isinstance(value, Reference)]
        local = {root: root if has_version(database, root) else trees(root, [copied]) for root in roots}
        system = database.system()
        before = system.get(NODE)
        node = replace(
            node, copying=replace(copying, documents_after=answer.after or copying.documents_after)
        )
        with database.transaction(actor=ACTOR, message="first copy of documents") as changes:
            for place in (COPIED, COPIED_REFERENCES):
                if copying.documents_after is None and system.get(place) is not None:
                    changes.delete_system(place)
            for path, value in rows:
                if isinstance(value, Document):
                    changes.put_system((*COPIED, *path[2:]), value.data)
                else:
                    note_copied(changes, path, value.root, local[value.root])
            changes.put_system(NODE, msgspec.json.encode(node), condition=same_content(before))
        if answer.after is None:
            return node


def _read(text: str, payload: bytes) -> tuple[Path, Document | Reference]:
    path, register = read_register_path(text), read_register(payload, now_ms())
    check_kinds(path, register)
    value = winner(register)[1].value
    if not isinstance(value, Document | Reference):
        raise InvalidInput("The other node has sent a document that is none.")
    return path, value
