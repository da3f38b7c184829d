"""A plan as callers see it: the tree of operators, with the indexes that answer them."""

from __future__ import annotations

from typing import Any

from svc_query.executing.matching import Matching
from svc_query.planning.nodes import AndNode, LeafNode, Node, OrNode

__all__ = ["explain_tree"]

WALK = "walk"
"""What stands in the place of an index where documents are tested one by one."""


def explain_tree(matching: Matching, *, analyzed: bool) -> dict[str, Any]:
    """Returns the tree of the filter.

    To those who do not see everything, the numbers count only what they see: what indexes say of all
    documents is not for them.
    """
    return _explain(matching.node, matching, analyzed)


def _explain(node: Node, matching: Matching, analyzed: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"operator": node.operator}
    if isinstance(node, LeafNode):
        answer["field"] = node.field
        answer["index"] = node.index or WALK
    # Asked before an estimate is made for the caller: that asks the indexes again.
    actual = len(node.passed) if node.actual is None else node.actual
    seconds = node.seconds
    answer["estimated_rows"] = _estimate(node, matching)
    if analyzed:
        answer["actual_rows"] = actual if not matching.scope.unchecked else None
        answer["duration_ms"] = round(seconds * 1000, 3)
    if node.children:
        answer["children"] = [_explain(child, matching, analyzed) for child in node.children]
    return answer


def _estimate(node: Node, matching: Matching) -> int | None:
    scope = matching.scope
    total = len(scope.numbers)
    if scope.caller.sees_all:
        return min(node.estimate + len(matching.tail), total)
    if scope.unchecked:
        return None
    if isinstance(node, LeafNode):
        # What an index has of all documents decides nothing here: it is not for this caller.
        node.reach = 0
        found = node.collect(scope.numbers - matching.tail, matching.budget)[0]
        return len(found) + len(matching.tail)  # what was not flushed may match, too
    children = [_estimate(child, matching) or 0 for child in node.children]
    if isinstance(node, AndNode):
        return min(children)
    return min(sum(children), total) if isinstance(node, OrNode) else total
