"""Which lines of two texts are the same: for differences, and for finding who wrote a line.

First, lines that are unique in both are matched in order (patience), which follows how people see a change.
What lies between them goes through the greedy algorithm of Myers (1986). The work is bounded: what is left
when the bound is reached counts as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import NamedTuple

__all__ = ["MatchingBlock", "matching_blocks"]

EFFORT = 4_000_000
_MOST_EDITS = 256

_Range = tuple[int, int, int, int]


class MatchingBlock(NamedTuple):
    """A run of equal lines."""

    before: int
    after: int
    length: int


def matching_blocks(
    before: Sequence[Hashable], after: Sequence[Hashable], *, effort: int = EFFORT
) -> list[MatchingBlock]:
    """Returns the runs of lines that two texts have in common, in order, none adjacent to the next.

    Args:
        before: lines of the one.
        after: lines of the other.
        effort: most steps; a million take about half a second. Whatever it is, the result is correct,
            and equal beginnings and ends are found.

    Blocks; memory grows with the number of lines.
    """
    numbers: dict[Hashable, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in before]
    right = [numbers.setdefault(line, len(numbers)) for line in after]
    search = _Search(left, right, effort)
    search.run()
    return _joined(search.found)


class _Search:
    def __init__(self, left: list[int], right: list[int], effort: int) -> None:
        self.left = left
        self.right = right
        self.effort = effort
        self.found: list[MatchingBlock] = []
        self.waiting: list[_Range] = [(0, len(left), 0, len(right))]

    def run(self) -> None:
        while self.waiting:
            a0, a1, b0, b1 = self._trim(*self.waiting.pop())
            if a0 == a1 or b0 == b1 or self.effort <= 0:
                continue
            anchors = self._anchors(a0, a1, b0, b1)
            if anchors is None:
                continue  # They have no line in common.
            if not anchors:
                self._shortest_edit(a0, a1, b0, b1)
                continue
            for i, j in anchors:
                self.found.append(MatchingBlock(i, j, 1))
                self.waiting.append((a0, i, b0, j))
                a0, b0 = i + 1, j + 1
            self.waiting.append((a0, a1, b0, b1))

    def _trim(self, a0: int, a1: int, b0: int, b1: int) -> _Range:
        left, right = self.left, self.right
        i, j = a0, b0
        while i < a1 and j < b1 and left[i] == right[j]:
            i, j = i + 1, j + 1
        self._add(a0, b0, i - a0)
        m, n = a1, b1
        while m > i and n > j and left[m - 1] == right[n - 1]:
            m, n = m - 1, n - 1
        self._add(m, n, a1 - m)
        self.effort -= (i - a0 + a1 - m) // 8
        return i, m, j, n

    def _anchors(self, a0: int, a1: int, b0: int, b1: int) -> list[tuple[int, int]] | None:
        """Lines that are unique in both, the longest series in the order of both; None if none is equal."""
        self.effort -= (a1 - a0 + b1 - b0) // 2
        in_left = _places(self.left, a0, a1)
        in_right = _places(self.right, b0, b1)
        if in_left.keys().isdisjoint(in_right):
            return None
        pairs = [(i, in_right[line]) for line, i in in_left.items() if i >= 0 and in_right.get(line, -1) >= 0]
        return _longest_rising(pairs)

    def _shortest_edit(self, a0: int, a1: int, b0: int, b1: int) -> None:
        """Matches a range by as few edits as possible; stops at a bound, with the matches until then."""
        reached: list[dict[int, int]] = []  # by number of edits: x on each diagonal k = x - y
        width, height = a1 - a0, b1 - b0
        best = 0
        while len(reached) <= _MOST_EDITS and self.effort > 0:
            best = self._extend(reached, a0, b0, width, height)
            x = reached[-1].get(width - height)
            if x == width:
                best = width - height
                break
        if not reached:
            return
        x = reached[-1][best]
        rest = (a0 + x, a1, b0 + x - best, b1)
        self._trace_back(reached, best, a0, b0, width, height)
        if rest[0] < a1 and rest[2] < b1:
            self.waiting.append(rest)

    def _extend(self, reached: list[dict[int, int]], a0: int, b0: int, width: int, height: int) -> int:
        """Goes one edit further on every diagonal; returns the diagonal that came furthest."""
        left, right = self.left, self.right
        edits = len(reached)
        row: dict[int, int] = {}
        best, furthest = 0, -1
        for k in range(-min(edits, height), min(edits, width) + 1):
            if (k + edits) % 2:
                continue
            x = _step(reached[-1], k, width, height)[0] if reached else 0
            if x < 0:
                continue
            start = x
            while x < width and x - k < height and left[a0 + x] == right[b0 + x - k]:
                x += 1
            row[k] = x
            self.effort -= 1 + (x - start) // 8
            if 2 * x - k > furthest:
                best, furthest = k, 2 * x - k
        reached.append(row)
        return best

    def _trace_back(
        self, reached: list[dict[int, int]], k: int, a0: int, b0: int, width: int, height: int
    ) -> None:
        for edits in range(len(reached) - 1, 0, -1):
            x = reached[edits][k]
            start, origin = _step(reached[edits - 1], k, width, height)
            self._add(a0 + start, b0 + start - k, x - start)
            k = origin
        self._add(a0, b0, reached[0][0])

    def _add(self, i: int, j: int, length: int) -> None:
        if length:
            self.found.append(MatchingBlock(i, j, length))


def _step(row: dict[int, int], k: int, width: int, height: int) -> tuple[int, int]:
    """Where one edit leads on diagonal ``k``, and from which diagonal; (-1, k) when nowhere."""
    x, origin = -1, k
    below = row.get(k - 1)
    if below is not None and below < width:
        x, origin = below + 1, k - 1
    above = row.get(k + 1)
    if above is not None and above > x and above - k <= height:
        x, origin = above, k + 1
    return x, origin


def _places(lines: list[int], start: int, end: int) -> dict[int, int]:
    places: dict[int, int] = {}
    for place in range(start, end):
        line = lines[place]
        places[line] = -1 if line in places else place
    return places


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence with rising second members, of pairs with rising first members."""
    lowest: list[int] = []  # the lowest end of a series of each length
    last: list[int] = []  # and the index of its last pair
    previous: list[int] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(lowest, j)
        previous.append(last[length - 1] if length else -1)
        if length == len(lowest):
            lowest.append(j)
            last.append(index)
        else:
            lowest[length] = j
            last[length] = index
    series: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        series.append(pairs[index])
        index = previous[index]
    return series[::-1]


def _joined(found: list[MatchingBlock]) -> list[MatchingBlock]:
    joined: list[MatchingBlock] = []
    for block in sorted(found):
        if joined:
            before, after, length = joined[-1]
            if before + length == block.before and after + length == block.after:
                joined[-1] = MatchingBlock(before, after, length + block.length)
                continue
        joined.append(block)
    return joined
