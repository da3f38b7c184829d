"""Chunks that a content probably has, since it replaces one that had them.

Where a chunk ends follows from its own bytes. So bytes at a boundary that have the hash of a chunk that was
cut before need not be cut again: the next boundary is behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

from svc.hashing import Hash, hash_content

__all__ = ["ExpectedChunks"]


class ExpectedChunks:
    """The chunks of another content, in order; goes along with one that is being cut.

    What is not like it costs one hash in vain, until a chunk comes that both have.
    """

    def __init__(self, chunks: Sequence[tuple[Hash, int]]) -> None:
        # The last one ends where its content ended, not where its bytes say so.
        self._chunks = chunks[:-1]
        self._places = {hash: place for place, (hash, _) in enumerate(self._chunks)}
        self._next = 0

    def match(self, view: memoryview) -> tuple[Hash, int] | None:
        """Returns hash and length of the chunk that bytes begin with, when it is the expected one."""
        if self._next >= len(self._chunks):
            return None
        hash, length = self._chunks[self._next]
        if length > len(view) or hash_content(view[:length]) != hash:
            self._next = len(self._chunks)
            return None
        self._next += 1
        return hash, length

    def note(self, hash: Hash) -> None:
        """Notes a chunk that was cut: behind one that both contents have, the next one is expected."""
        self._next = self._places.get(hash, len(self._chunks)) + 1
