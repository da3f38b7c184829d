"""What the commands print."""

from __future__ import annotations

__all__ = ["short_hash"]

_SHORT = 12


def short_hash(root: str) -> str:
    """The first digits of a hash, enough to tell versions apart at a glance."""
    return root[:_SHORT]
