"""A plan, as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["plan_lines"]

Document = dict[str, Any]

_KNOWN = frozenset(
    ("operator", "field", "index", "estimated_rows", "actual_rows", "duration_ms", "children", "op", "value")
)


def plan_lines(node: Document, depth: int = 0) -> Iterator[str]:
    """Yields a line for each node of a plan, those that it is made of below it, further in."""
    words = [str(node.get("operator", node.get("op", "?")))]
    if node.get("field") is not None:
        words.append(str(node["field"]))
    if node.get("index") is not None:
        words.append(f"by {node['index']}")
    if node.get("estimated_rows") is not None:
        words.append(f"~{node['estimated_rows']:,} rows")
    if node.get("actual_rows") is not None:
        words.append(f"= {node['actual_rows']:,} rows")
    if node.get("duration_ms") is not None:
        words.append(f"in {node['duration_ms']:.2f} ms")
    others = [f"{name}: {value}" for name, value in node.items() if name not in _KNOWN and value is not None]
    if others:
        words.append(f"({', '.join(others)})")
    yield "  " * depth + " ".join(words)
    for child in node.get("children") or ():
        yield from plan_lines(child, depth + 1)
