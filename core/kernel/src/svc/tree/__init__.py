"""Directories as Merkle trees: lookup, edit, walk, diff and merge, as functions of hashes and a store.

Nothing here does I/O or keeps state: nodes come from a ``NodeStore`` and go to it. Old roots stay readable.
"""

from __future__ import annotations

from svc.tree.codec import decode_node, empty_payload
from svc.tree.diff import Change, diff, differences
from svc.tree.edit import build, edit, empty_directory
from svc.tree.entry import NO_TOTALS, Entry, EntryKind, Totals
from svc.tree.merge import MergeConflict, MergeStrategy, merge
from svc.tree.node import Inner, Leaf, Node
from svc.tree.reachability import check_directory, check_node, walk_nodes
from svc.tree.read import (
    directory_entry,
    entries,
    entry_count,
    lookup,
    rank,
    resolve,
    totals,
    walk,
    walk_files,
)
from svc.tree.store import NodeReader, NodeStore
from svc.tree.working import UNWRITTEN, WorkingTree

__all__ = [
    "NO_TOTALS",
    "UNWRITTEN",
    "Change",
    "Entry",
    "EntryKind",
    "Inner",
    "Leaf",
    "MergeConflict",
    "MergeStrategy",
    "Node",
    "NodeReader",
    "NodeStore",
    "Totals",
    "WorkingTree",
    "build",
    "check_directory",
    "check_node",
    "decode_node",
    "diff",
    "differences",
    "directory_entry",
    "edit",
    "empty_directory",
    "empty_payload",
    "entries",
    "entry_count",
    "lookup",
    "merge",
    "rank",
    "resolve",
    "totals",
    "walk",
    "walk_files",
    "walk_nodes",
]
