"""How near two vectors are: what a metric says, as a score above 0 and at most 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST", "METRICS", "Floats", "Metric", "as_vector", "score_of", "scores_of"]

Metric = str
METRICS: dict[Metric, str] = {"cosine": "cos", "l2": "l2sq", "ip": "ip"}
"""Metrics, and what the library calls them."""

LARGEST = 1e15
"""Larger numbers would leave the range of 32-bit floats when they are multiplied."""

Floats = npt.NDArray[np.float32]
_LEAST = 1e-9


def as_vector(value: Any, dimensions: int | None) -> Floats | None:
    """Returns a value as a vector; None when it is none of that many finite numbers.

    Args:
        value: anything.
        dimensions: how many numbers; None takes any.
    """
    if not isinstance(value, tuple | list) or not value or dimensions not in (None, len(value)):
        return None
    if not all(_is_number(number) for number in value):
        return None
    return np.asarray(value, dtype=np.float32)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def scores_of(metric: Metric, wanted: Floats, vectors: Floats) -> npt.NDArray[np.float64]:
    """Returns how near vectors are to one.

    ``cosine`` gives (1 + cosine) / 2, ``l2`` gives 1 / (1 + distance), ``ip`` the logistic function of the
    inner product. All grow with nearness, so the order is that of the metric.
    """
    one, many = wanted.astype(np.float64), vectors.astype(np.float64)
    if metric == "l2":
        distances = np.sqrt(((many - one) ** 2).sum(axis=1))
        return np.maximum(1 / (1 + distances), _LEAST)
    products = many @ one
    if metric == "ip":
        return np.maximum(1 / (1 + np.exp(-np.clip(products, -700, 700))), _LEAST)
    lengths = np.sqrt((many**2).sum(axis=1)) * math.sqrt(float(one @ one))
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.clip((1 + cosines) / 2, _LEAST, 1.0)


def score_of(metric: Metric, wanted: Floats, values: Sequence[Any]) -> float | None:
    """Returns how near the nearest of some values is; None when none of them is a vector of that length."""
    vectors = [one for value in values if (one := as_vector(value, len(wanted))) is not None]
    return float(scores_of(metric, wanted, np.stack(vectors)).max()) if vectors else None
