"""Default limits of a database; settings may change them."""

from __future__ import annotations

__all__ = ["MAXIMUM_TREE_ENTRIES"]

MAXIMUM_TREE_ENTRIES = 1_000_000_000
"""Most files, links and directories of a tree."""
