"""Pieces of streams that are the same for many clients, made once: who waits at the end asks for the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias

from svc_events.api import EventBatch

__all__ = ["Piece", "SharedPieces"]

Piece: TypeAlias = tuple[bytes, int]
"""The frames, and the number of the event in the batch that comes behind them."""

_MOST_BATCHES = 64
_MOST_BYTES = 8 << 20
"""Of all pieces, about."""
_WEIGHT_OF_ONE = 256


class SharedPieces:
    """The pieces of the last batches. Used by any thread or greenlet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the identity of the batch, which is kept beside its pieces, so that no other has the same.
        self._batches: OrderedDict[int, _Batch] = OrderedDict()
        self._weight = 0

    def find(self, batch: EventBatch, key: Hashable) -> Piece | None:
        """Returns a piece of a batch; None: nobody has made it, or not lately."""
        kept = self._batches.get(id(batch))
        return None if kept is None else kept.pieces.get(key)

    def keep(self, batch: EventBatch, key: Hashable, piece: Piece) -> None:
        """Keeps a piece for others."""
        weight = len(piece[0]) + _WEIGHT_OF_ONE
        with self._lock:
            kept = self._batches.setdefault(id(batch), _Batch(batch))
            if key not in kept.pieces:
                kept.pieces[key] = piece
                kept.weight += weight
                self._weight += weight
            while self._weight > _MOST_BYTES or len(self._batches) > _MOST_BATCHES:
                self._weight -= self._batches.popitem(last=False)[1].weight


class _Batch:
    __slots__ = ("batch", "pieces", "weight")

    def __init__(self, batch: EventBatch) -> None:
        self.batch = batch
        self.pieces: dict[Hashable, Piece] = {}
        self.weight = 0
