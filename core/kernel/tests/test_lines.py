"""The lines that two texts have in common."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from svc.lines import MatchingBlock, matching_blocks

LINES = st.lists(st.sampled_from("abcdefgh"), max_size=40)


def _check(before: list[str], after: list[str], blocks: list[MatchingBlock]) -> int:
    """Asserts that blocks are what they claim to be; returns how many lines they match."""
    i = j = -1
    for block in blocks:
        assert block.length > 0
        assert block.before >= max(i, 0)
        assert block.after >= max(j, 0)
        assert (block.before, block.after) != (i, j), "two blocks that touch are one"
        i, j = block.before + block.length, block.after + block.length
        assert before[block.before : i] == after[block.after : j]
    return sum(block.length for block in blocks)


def _longest_common(before: list[str], after: list[str]) -> int:
    row = [0] * (len(after) + 1)
    for line in before:
        above = row
        row = [0]
        for j, other in enumerate(after):
            row.append(above[j] + 1 if line == other else max(row[j], above[j + 1]))
    return row[-1]


@given(LINES, LINES)
def test_blocks_are_runs_of_equal_lines_in_order(before: list[str], after: list[str]) -> None:
    matched = _check(before, after, matching_blocks(before, after))
    assert matched <= _longest_common(before, after)


@given(st.lists(st.sampled_from("ab"), max_size=25), st.lists(st.sampled_from("ab"), max_size=25))
def test_without_unique_lines_the_match_is_the_longest(before: list[str], after: list[str]) -> None:
    before, after = [*before, *before], [*after, *after]
    matched = _check(before, after, matching_blocks(before, after))
    assert matched == _longest_common(before, after)


@given(LINES, LINES, st.integers(0, 60))
def test_with_little_effort_it_is_still_right(before: list[str], after: list[str], effort: int) -> None:
    _check(before, after, matching_blocks(before, after, effort=effort))


def test_equal_texts_are_one_block() -> None:
    assert matching_blocks(["x"] * 9, ["x"] * 9) == [MatchingBlock(0, 0, 9)]
    assert matching_blocks([], []) == []
    assert matching_blocks(["x"], []) == []


def test_an_inserted_function_is_seen_as_one() -> None:
    before = ["def a():", "  return", "", "def c():", "  return", ""]
    after = ["def a():", "  return", "", "def b():", "  return", "", "def c():", "  return", ""]
    assert matching_blocks(before, after) == [MatchingBlock(0, 0, 3), MatchingBlock(3, 6, 3)]


def test_beginnings_and_ends_are_found_whatever_the_effort() -> None:
    before = ["same", "x", "y", "end"]
    after = ["same", "y", "x", "end"]
    assert matching_blocks(before, after, effort=0) == [MatchingBlock(0, 0, 1), MatchingBlock(3, 3, 1)]


def test_a_text_that_offers_no_hold_is_matched_beyond_the_bound_of_one_search() -> None:
    chance = random.Random(1)
    before = [chance.choice("abc") for _ in range(3000)]
    after = [chance.choice("abc") for _ in range(3000)]
    matched = _check(before, after, matching_blocks(before, after))
    assert matched > 1000
