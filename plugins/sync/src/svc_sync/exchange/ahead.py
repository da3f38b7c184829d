"""Names and documents that only the cluster has, put before a node that returns takes over the rest.

There may be thousands: in pages of their own they do not lengthen the one transaction that a write of a
client breaks off. Nothing stood at their paths and nobody wrote there, so they have no registers here,
and are stamped as they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from svc.plugin import Database, Path, attempt
from svc_sync.exchange.commits import stamp
from svc_sync.exchange.documents import replace_document
from svc_sync.exchange.records import ACTOR
from svc_sync.exchange.references import Planned, plan_all_references, put_references, register_path
from svc_sync.exchange.seen_cluster import SeenCluster, pages_of, value_at
from svc_sync.exchange.store import RegisterStore
from svc_sync.exchange.trees import TreeCopier
from svc_sync.scopes import REFERENCES, SYSTEM
from svc_sync.values import Document

__all__ = ["put_ahead"]


def put_ahead(database: Database, seen: SeenCluster, trees: TreeCopier) -> None:
    """Puts what is new here; commits page by page, each again where somebody writes there.

    Args:
        database: of this node.
        seen: what a member holds.
        trees: has copied the trees that its names stand for.
    """
    if seen.scope.is_whole:
        for page in pages_of(_rows(database, seen)):
            attempt(partial(_put, database, trees, page), "This node")


def _rows(database: Database, seen: SeenCluster) -> Iterator[tuple[Path, Planned | Document]]:
    store = seen.registers()
    names = plan_all_references(
        stamp(database).references, dict(store.below(REFERENCES)), seen.stable, seen.cluster
    )
    for one in names:
        # What stands under the name of a loser has the register of another name.
        if one.root is not None and one.of == one.name:
            yield register_path(one.kind, one.name), one
    for path in _document_paths(seen, store):
        document = value_at(seen.stable, store, path)
        if isinstance(document, Document):
            yield path, document


def _document_paths(seen: SeenCluster, store: RegisterStore) -> Iterator[Path]:
    yield from (path for path in seen.stable if path[:2] == SYSTEM)
    yield from (path for path, _ in store.below(SYSTEM) if path not in seen.stable)


def _put(database: Database, trees: TreeCopier, page: list[tuple[Path, Planned | Document]]) -> None:
    snapshot = stamp(database)
    new = [row for row in page if snapshot.shown(row[0]) is None and snapshot.registers.get(row[0]) is None]
    names = [one for _, one in new if isinstance(one, Planned)]
    with database.transaction(actor=ACTOR, message="put what is new of the cluster") as changes:
        put_references(
            changes, database.system(), [(one, trees.local(one.root, snapshot.references)) for one in names]
        )
        for path, one in new:
            if isinstance(one, Document):
                replace_document(changes, snapshot.documents, path, one)
