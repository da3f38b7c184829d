"""A JSON document as a tree of bounded size, for a page."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from msgspec import Struct

__all__ = ["Node", "tree_of"]

MOST_NODES = 2_000
MOST_DEPTH = 30
MOST_TEXT = 500
_OPEN_DEPTH = 2
_OPEN_PARTS = 50
_KINDS = {str: "string", bool: "constant", type(None): "constant", int: "figure", float: "figure"}


class Node(Struct):
    """A value of a document.

    Attributes:
        name: of the member that it is, or its place in a list; None for the document.
        kind: what it is.
        text: the value, or how many parts it has.
        parts: of an object or a list; None for anything else.
        is_open: whether its parts are shown at first.
    """

    name: str | None
    kind: str
    text: str
    parts: list[Node] | None = None
    is_open: bool = False


def tree_of(document: Any) -> tuple[Node, bool]:
    """Returns the tree, and whether it shows all: level by level, so that what is cut off lies deep."""
    root = _node(None, document, 0)
    waiting = deque([(root, document, 0)])
    left, is_whole = MOST_NODES, True
    while waiting:
        node, value, depth = waiting.popleft()
        if node.parts is None:
            continue
        named = value.items() if isinstance(value, dict) else enumerate(value)
        for name, one in named:
            if left == 0 or depth == MOST_DEPTH:
                is_whole = False
                break
            left -= 1
            part = _node(str(name)[:MOST_TEXT], one, depth + 1)
            node.parts.append(part)
            waiting.append((part, one, depth + 1))
    return root, is_whole


def _node(name: str | None, value: Any, depth: int) -> Node:
    if isinstance(value, dict | list):
        noun = "member" if isinstance(value, dict) else "item"
        text = f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}"
        is_open = (depth < _OPEN_DEPTH and len(value) <= _OPEN_PARTS) or depth == 0
        return Node(name, "parts", text, [], is_open)
    text = json.dumps(value, ensure_ascii=False)
    cut = text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"
    return Node(name, _KINDS.get(type(value), "string"), cut)
