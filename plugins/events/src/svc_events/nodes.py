"""Which node of a cluster a database of this process is: said by who knows, for who tells of events."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from svc.plugin import Database

__all__ = ["name_node", "node_id_of"]

_nodes: WeakKeyDictionary[Database, Callable[[Database], int]] = WeakKeyDictionary()


def name_node(database: Database, node_id: Callable[[Database], int]) -> None:
    """Says how to learn which node a database is; it is asked each time, since a copy becomes another."""
    _nodes[database] = node_id


def node_id_of(database: Database) -> int:
    """Returns the id of the node that a database is; 0 where it is in no cluster."""
    known = _nodes.get(database)
    return 0 if known is None else known(database)
