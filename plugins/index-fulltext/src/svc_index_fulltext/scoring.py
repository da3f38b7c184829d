"""How the scores of BM25, which have no upper end, become scores above 0 and at most 1."""

from __future__ import annotations

__all__ = ["score_of"]

_HALF = 8.0
_LEAST = 1e-9


def score_of(bm25: float) -> float:
    """Returns ``s / (s + 8)``: it grows with the score, and is one half where BM25 is 8."""
    return max(_LEAST, bm25 / (bm25 + _HALF))
